-- Returns whether a table is one of Citus, of any kind.
create or replace function headroom.is_citus_table(p_table regclass) returns boolean
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_result boolean;
begin
    if to_regclass('pg_catalog.pg_dist_partition') is null then
        return false;
    end if;
    -- The query is a text, because the table exists only with Citus.
    execute 'select exists (select from pg_dist_partition where logicalrelid = $1)' into v_result using p_table;
    return v_result;
end
$$;
