-- $1 text: source. $2 text: id. Null where it is not kept any more.
select events.payload::text as payload
from headroom.billing_events as events
where events.source = $1 and events.id = $2;
