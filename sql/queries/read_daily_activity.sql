-- name: read_daily_activity
-- $1 integer: days, today included. A row for each, also where nobody came, the oldest first.
select
    to_char(days.day, 'YYYY-MM-DD') as day, coalesce(activity.messages, 0) as messages, coalesce(activity.blocked, 0) as blocked
from generate_series(
    (headroom.now() at time zone 'UTC')::date - ($1::integer - 1), (headroom.now() at time zone 'UTC')::date,
    interval '1 day'
) as days (day)
left join headroom.daily_activity as activity on activity.day = days.day::date
order by days.day;
