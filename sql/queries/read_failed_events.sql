-- Reads the newest $1 billing events that could not be applied, each with the number of all failed events, of which at
-- most $2 are counted.
select
    newest.source, newest.id, newest.type, newest.received_at, newest.user_id, newest.problem, counted.failed
from (
    select count(*) as failed
    from (select from headroom.billing_events as events where events.outcome = 'failed' limit $2::bigint) as bounded
) as counted
cross join lateral (
    select events.*
    from headroom.billing_events as events
    where events.outcome = 'failed'
    order by events.received_at desc, events.source asc, events.id desc
    limit $1::bigint
) as newest
order by newest.received_at desc, newest.source asc, newest.id desc;
