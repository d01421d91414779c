-- What stores and billing systems sent of user $1, the newest first; $2 of them at most.
select
    events.happened_at, events.source, events.type, events.outcome, headroom.change_text(null, events.effect) as detail,
    events.problem
from headroom.billing_events as events
where events.user_id = $1
order by events.happened_at desc, events.source, events.id
limit $2::bigint;
