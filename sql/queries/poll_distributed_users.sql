-- Finds changed users as poll_subscribed_users does, in a distributed database.
select changed.ordinal from headroom.changed_users($1::uuid[], $2::text[]) as changed (ordinal);
