-- name: prune_notifications
-- $1 integer: notifications at most. How long they are kept stands in the function.
select headroom.prune_store_notifications(p_limit => $1);
