-- Returns the day that names the period which contains p_at: a month's first day, a week's Monday, or the day itself.
-- It is null for a plan that never resets. p_anchor_day is for monthly periods, p_time_zone for the others.
create or replace function headroom.period_day(
    p_cycle text, p_at timestamptz, p_anchor_day integer, p_time_zone text
) returns date
    language sql immutable parallel safe
    return case p_cycle
        when 'monthly' then headroom.cycle_month(p_at, p_anchor_day)
        when 'weekly' then date_trunc('week', p_at at time zone p_time_zone)::date
        when 'daily' then (p_at at time zone p_time_zone)::date
    end;
