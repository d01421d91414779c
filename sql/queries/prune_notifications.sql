-- Deletes notifications of periods that have ended long ago. $1 integer: notifications at most.
-- headroom.prune_notifications has the age.
select headroom.prune_notifications(p_limit => $1);
