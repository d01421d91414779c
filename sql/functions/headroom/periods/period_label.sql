-- Returns the label of the period that p_day names (headroom.period_day), or of the month or week in which it lies:
-- 2026-11, 2026-W47 or 2026-11-22.
create or replace function headroom.period_label(p_cycle text, p_day date) returns text
    language sql stable parallel safe
    return pg_catalog.to_char(p_day::timestamp, case p_cycle
        when 'monthly' then 'YYYY-MM' when 'weekly' then 'IYYY-"W"IW' when 'daily' then 'YYYY-MM-DD'
    end);
