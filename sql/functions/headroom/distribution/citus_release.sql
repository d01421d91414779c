-- Returns the release of Citus, such as 13.2.0, if it has distributed the rows of users; otherwise null. It is the
-- release of the library, because releases that differ in their last number have the same version of the extension.
create or replace function headroom.citus_release() returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_release text;
begin
    if headroom.is_distributed() then
        execute 'select substring(citus_version() from ''Citus ([^ ]+)'')' into v_release;
    end if;
    return v_release;
end
$$;
