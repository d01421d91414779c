-- Returns whether a trigger on a table of which each machine has a copy is to act here. Citus fires it for each copy,
-- but its effect must happen once: on the coordinator, which is group 0. It is always true on one machine.
create or replace function headroom.is_first_copy() returns boolean
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_group integer := 0;
begin
    if to_regclass('pg_catalog.pg_dist_local_group') is not null then
        execute 'select groupid from pg_dist_local_group' into v_group;
    end if;
    return v_group = 0;
end
$$;
