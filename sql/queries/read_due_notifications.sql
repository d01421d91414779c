-- Reads the $1 integer notifications at most whose next attempt has been due for the longest time, and the present time
-- in seconds since 1970.
select
    notifications.id::text as id, notifications.body, notifications.attempts,
    extract(epoch from headroom.now())::bigint as sent_at
from headroom.notifications as notifications
where notifications.status = 'p' and notifications.next_attempt_at <= headroom.now()
order by notifications.next_attempt_at, notifications.id
limit $1::integer;
