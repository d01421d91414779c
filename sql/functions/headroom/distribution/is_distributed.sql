-- Returns whether Citus has, or is about to have, the rows of users on several machines.
create or replace function headroom.is_distributed() returns boolean
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return headroom.is_citus_table(to_regclass('public.message_usage'));
end
$$;
