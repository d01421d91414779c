-- Returns the instant p_count weeks or months after p_origin, in UTC. p_day: the day of the month; in a shorter month
-- it is the last day. PostgreSQL inlines the function.
create or replace function headroom.period_after(
    p_cycle text, p_origin timestamptz, p_day integer, p_count integer
) returns timestamptz
    language sql immutable parallel safe
    return case
        when p_cycle = 'weekly'
            then ((p_origin at time zone 'UTC') + p_count * interval '7 days') at time zone 'UTC'
        else (
            (headroom.cycle_start(
                (date_trunc('month', p_origin at time zone 'UTC') + p_count * interval '1 month')::date, p_day
            ) at time zone 'UTC') + (p_origin at time zone 'UTC')::time
        ) at time zone 'UTC'
    end;
