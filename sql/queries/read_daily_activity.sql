-- Reads messages and refusals of the last $1 UTC days, oldest first; the last one is today by the database's clock.
-- day: days since 1970-01-01. Days without activity have zeros.
select
    (days.day - date '1970-01-01')::bigint as day, coalesce(activity.messages, 0)::bigint as messages,
    coalesce(activity.blocked, 0)::bigint as blocked
from generate_series(0, $1::integer - 1) as ago (days)
cross join lateral (select (headroom.now() at time zone 'UTC')::date - ago.days as day) as days
left join headroom.daily_activity as activity on activity.day = days.day
order by days.day;
