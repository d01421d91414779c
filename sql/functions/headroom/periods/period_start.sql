-- Returns when the period that p_day names begins (headroom.period_day). p_anchor_day is for monthly periods,
-- p_time_zone for the others.
create or replace function headroom.period_start(
    p_cycle text, p_day date, p_anchor_day integer, p_time_zone text
) returns timestamptz
    language sql immutable parallel safe
    return case p_cycle
        when 'monthly' then headroom.cycle_start(p_day, p_anchor_day) else headroom.day_start(p_day, p_time_zone)
    end;
