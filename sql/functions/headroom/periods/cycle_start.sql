-- Returns when the monthly period of a month begins. p_month is the month's first day. In a shorter month the anchor
-- day is the last day.
create or replace function headroom.cycle_start(p_month date, p_anchor_day integer) returns timestamptz
    language sql immutable parallel safe
    return least(
        p_month + p_anchor_day - 1, (p_month + interval '1 month - 1 day')::date
    )::timestamp at time zone 'UTC';
