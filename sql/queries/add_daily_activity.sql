-- name: add_daily_activity
-- $1 bigint: messages counted. $2 bigint: requests refused. Both since the last time that this was said.
select headroom.add_daily_activity($1::bigint, $2::bigint);
