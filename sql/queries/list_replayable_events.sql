-- Which billing events to apply anew, oldest first. $1 text, $2 text: source and id of one; null is all of them. $3 boolean:
-- only those that failed.
select events.source, events.id
from headroom.billing_events as events
where (events.source = $1 or $1 is null) and (events.id = $2 or $2 is null)
    and (events.outcome = 'failed' or not $3)
    -- Of what was pruned or forgotten nothing can be read.
    and (events.payload is not null or $1 is not null)
order by events.happened_at, events.source, events.id;
