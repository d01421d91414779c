-- Returns the day that names the period after the one named by p_day (headroom.period_day).
create or replace function headroom.next_period_day(p_cycle text, p_day date) returns date
    language sql immutable parallel safe
    return case p_cycle
        when 'monthly' then (p_day + interval '1 month')::date
        when 'weekly' then p_day + 7
        when 'daily' then p_day + 1
    end;
