-- Lists the newest $3 billing events, oldest first. $1 boolean: failed events only. $2 text: UUID of a user; null is
-- all users.
select
    newest.source, newest.id, newest.type, newest.happened_at, newest.received_at, newest.user_id::text as user_id,
    newest.outcome, newest.problem, newest.attempts
from (
    select events.*
    from headroom.billing_events as events
    where (events.outcome = 'failed' or not $1) and (events.user_id = $2::uuid or $2 is null)
    order by events.received_at desc, events.id desc
    limit $3
) as newest
order by newest.happened_at, newest.source, newest.id;
