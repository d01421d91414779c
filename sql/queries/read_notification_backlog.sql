-- Reads the number of pending notifications, counting $1 integer at most, and the seconds for which the oldest one has
-- been pending.
select
    count(*) as pending,
    coalesce(greatest(extract(epoch from headroom.now() - min(bounded.created_at)), 0), 0)::bigint as oldest_seconds
from (
    select notifications.created_at
    from headroom.notifications as notifications
    where notifications.status = 'p'
    limit $1::integer
) as bounded;
