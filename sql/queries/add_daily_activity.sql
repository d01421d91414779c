-- Adds what an instance has counted since it last did this to the day that it is now. The row of a day is locked for the
-- length of this statement, every ten seconds by each instance, and no counting waits for it. $1 bigint: messages counted.
-- $2 bigint: requests refused.
insert into headroom.daily_activity as activity (day, messages, blocked)
values ((headroom.now() at time zone 'UTC')::date, $1::bigint, $2::bigint)
on conflict (day) do update
set messages = least(activity.messages::numeric + excluded.messages, 1000000000000000),
    blocked = least(activity.blocked::numeric + excluded.blocked, 1000000000000000);
