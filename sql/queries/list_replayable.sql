-- name: list_replayable
-- Which notifications to read anew, oldest first. $1 text, $2 text: source and id of one; null is all of them. $3 boolean:
-- only those that failed.
select notifications.source, notifications.id
from headroom.store_notifications as notifications
where (notifications.source = $1 or $1 is null) and (notifications.id = $2 or $2 is null)
    and (notifications.outcome = 'failed' or not $3)
    -- Of what was pruned or forgotten nothing can be read.
    and (notifications.payload is not null or $1 is not null)
order by notifications.happened_at, notifications.source, notifications.id;
