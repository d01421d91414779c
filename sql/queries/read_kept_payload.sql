-- name: read_kept_payload
-- $1 text: source. $2 text: id. Null where it is not kept any more.
select notifications.payload::text as payload
from headroom.store_notifications as notifications
where notifications.source = $1 and notifications.id = $2;
