-- name: list_notifications
-- The newest $3 notifications, in the order in which they happened. $1 boolean: only those that failed. $2 text: only
-- those of the user with this UUID; null is everybody's.
select
    newest.source, newest.id, newest.type, newest.happened_at, newest.received_at, newest.user_id::text as user_id,
    newest.outcome, newest.problem, newest.attempts
from (
    select notifications.*
    from headroom.store_notifications as notifications
    where (notifications.outcome = 'failed' or not $1) and (notifications.user_id = $2::uuid or $2 is null)
    order by notifications.received_at desc, notifications.id desc
    limit $3
) as newest
order by newest.happened_at, newest.source, newest.id;
