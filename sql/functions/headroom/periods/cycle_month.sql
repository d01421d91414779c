-- Returns the first day of the month in which the monthly period that contains p_at began: this month, or the previous
-- one before the anchor day.
create or replace function headroom.cycle_month(p_at timestamptz, p_anchor_day integer) returns date
    language sql immutable parallel safe
    return case
        when p_anchor_day = 1
            or p_at >= headroom.cycle_start(date_trunc('month', p_at at time zone 'UTC')::date, p_anchor_day)
            then date_trunc('month', p_at at time zone 'UTC')::date
        else (date_trunc('month', p_at at time zone 'UTC')::date - interval '1 month')::date
    end;
