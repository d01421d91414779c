-- Reads the payload of a billing event; null after it was pruned. $1 text: source. $2 text: id.
select events.payload::text as payload
from headroom.billing_events as events
where events.source = $1 and events.id = $2;
