-- Returns whether PostgreSQL knows a time zone. It knew that of each plan when the plan was written
-- (headroom.check_time_zone).
create or replace function headroom.is_time_zone(p_time_zone text) returns boolean
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    perform pg_catalog.now() at time zone p_time_zone;
    return true;
exception
    when invalid_parameter_value then
        return false;
end
$$;
