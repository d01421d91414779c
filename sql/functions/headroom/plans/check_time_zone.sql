-- Trigger function: refuses a plan's time zone that PostgreSQL does not know. PostgreSQL would also accept any other
-- text with a digit as a time zone, as POSIX does.
create or replace function headroom.check_time_zone() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (select from pg_timezone_names as zones where zones.name = new.time_zone) then
        raise exception 'there is no time zone %', quote_literal(new.time_zone)
            using errcode = 'invalid_parameter_value',
                hint = 'select name from pg_timezone_names lists them, such as Europe/Berlin. Null is UTC.';
    end if;
    return new;
end
$$;
