-- Reads one billing event. $1 text: source. $2 text: id.
select
    events.source, events.id, events.type, events.happened_at, events.received_at, events.user_id, events.outcome,
    events.problem, events.payload is not null as has_payload
from headroom.billing_events as events
where events.source = $1 and events.id = $2;
