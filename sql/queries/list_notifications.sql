-- Lists the newest $3 bigint notifications, oldest first. $1 text: status, as headroom.notifications has it; null is
-- all. $2 text: UUID of a user; null is all users.
select
    newest.id::text as id, newest.created_at, newest.user_id::text as user_id, newest.billing_period, newest.plan,
    newest.allowance, newest.part, newest.tier,
    newest.status::text as status, newest.attempts, newest.next_attempt_at, newest.delivered_at,
    newest.problem
from (
    select notifications.*
    from headroom.notifications as notifications
    where (notifications.status = $1::"char" or $1 is null) and (notifications.user_id = $2::uuid or $2 is null)
    order by notifications.created_at desc, notifications.id desc
    limit $3
) as newest
order by newest.created_at, newest.id;
