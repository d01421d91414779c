-- name: take_store_notification
-- $1 text: the notification, as JSON; docs/reference.md has its fields.
select headroom.take_store_notification($1::jsonb)::text as answer;
