-- Reads how many notifications are pending, counting $1 integer at most, and for how many seconds the oldest one has
-- been.
select
    count(*) as pending,
    coalesce(greatest(extract(epoch from headroom.now() - min(bounded.created_at)), 0), 0)::bigint as oldest_seconds
from (
    select notifications.created_at
    from headroom.notifications as notifications
    where notifications.status = 'p'
    limit $1::integer
) as bounded;
