-- Adds messages and refusals to the present UTC day. $1 bigint: messages counted. $2 bigint: requests refused. The row
-- of the day is locked while this statement executes, every ten seconds by each instance. Counting does not wait for
-- it.
insert into headroom.daily_activity as activity (day, messages, blocked)
values ((headroom.now() at time zone 'UTC')::date, $1::bigint, $2::bigint)
on conflict (day) do update
set messages = least(activity.messages::numeric + excluded.messages, 1000000000000000),
    blocked = least(activity.blocked::numeric + excluded.blocked, 1000000000000000);
