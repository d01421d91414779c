-- Lists billing events to apply again: links first, because other events may wait for their users, then oldest first.
-- $1 text, $2 text: source and id of one event; null is all events. $3 boolean: failed events only.
select events.source, events.id
from headroom.billing_events as events
where (events.source = $1 or $1 is null) and (events.id = $2 or $2 is null)
    and (events.outcome = 'failed' or not $3)
    -- Events that were pruned or forgotten have no payload.
    and (events.payload is not null or $1 is not null)
order by (events.payload ? 'link') is not true, events.happened_at, events.source, events.id;
