-- Returns the number of bytes that the tables of users take with their indexes, on all machines.
create or replace function headroom.users_size() returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_table regclass;
    v_bytes bigint;
    v_sum bigint := 0;
begin
    foreach v_table in array headroom.distributed_tables()::regclass[] loop
        execute case
            when headroom.is_citus_table(v_table) then 'select citus_total_relation_size($1)'
            else 'select pg_total_relation_size($1)'
        end into v_bytes using v_table;
        v_sum := v_sum + v_bytes;
    end loop;
    return v_sum;
end
$$;
