-- Reads the newest $2 billing events of user $1, newest first.
select
    events.happened_at, events.source, events.id, events.type, events.outcome,
    headroom.change_text(null, events.resulting_entitlement) as detail, events.problem
from headroom.billing_events as events
where events.user_id = $1
order by events.happened_at desc, events.source asc, events.id asc
limit $2::bigint;
