-- Returns the roles of users who read their own rows, as a list for a policy. PostgREST's roles have the rights of
-- headroom_user directly, because they do not inherit.
create or replace function headroom.user_roles() returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select string_agg(rolname, ', ' order by rolname desc) from pg_roles
        where rolname in ('headroom_user', 'authenticated')
    );
end
$$;
