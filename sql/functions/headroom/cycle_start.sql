-- The instant at which the monthly period that begins in a month begins; p_month is that month's first day. An anchor
-- day that the month missing is clamped to its last.
create or replace function headroom.cycle_start(p_month date, p_anchor_day integer) returns timestamptz
    language sql immutable parallel safe
    return (p_month + case
        when p_anchor_day <= 28 then p_anchor_day - 1
        else least(p_anchor_day, extract(day from p_month + interval '1 month - 1 day')::integer) - 1
    end)::timestamp at time zone 'UTC';
