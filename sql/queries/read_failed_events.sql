-- The newest $1 billing events that could not be applied, each with how many there are: $2 of them are counted at most.
select
    newest.source, newest.type, newest.received_at, newest.user_id, newest.problem, counted.failed
from (
    select count(*) as failed
    from (select from headroom.billing_events as events where events.outcome = 'failed' limit $2::bigint) as bounded
) as counted
cross join lateral (
    select events.*
    from headroom.billing_events as events
    where events.outcome = 'failed'
    order by events.received_at desc, events.source, events.id desc
    limit $1::bigint
) as newest
order by newest.received_at desc, newest.source, newest.id desc;
