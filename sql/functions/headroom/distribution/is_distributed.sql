-- Returns whether Citus has distributed the rows of users over several machines.
create or replace function headroom.is_distributed() returns boolean
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_result boolean;
begin
    if to_regclass('pg_catalog.pg_dist_partition') is null then
        return false;
    end if;
    execute 'select exists (select from pg_dist_partition where logicalrelid = to_regclass(''public.message_usage''))'
    into v_result;
    return v_result;
end
$$;
