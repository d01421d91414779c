-- Returns the first instant of a day in a time zone: midnight. If clocks go back to midnight, it is the first of the
-- two; if midnight does not exist, it is the instant at which clocks go forward.
create or replace function headroom.day_start(p_day date, p_time_zone text) returns timestamptz
    language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp
as $$
declare
    v_midnight constant timestamp := p_day;
    -- This is the second of two midnights. For one that does not exist, PostgreSQL takes the offset before it.
    v_latest constant timestamptz := v_midnight at time zone p_time_zone;
    v_evening constant timestamptz := v_latest - interval '3 hours';
    v_earliest constant timestamptz := v_evening + (v_midnight - (v_evening at time zone p_time_zone));
begin
    return case
        when v_earliest at time zone p_time_zone >= v_midnight then least(v_earliest, v_latest) else v_latest
    end;
end
$$;
