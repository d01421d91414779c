-- Lists the roles of Supabase and PostgREST that have none of their rights on Headroom's objects, because they were
-- created after the last migration. rights.sql grants these rights.
select role.rolname as role
from pg_roles as role
join (
    values
        ('authenticated', 'public.increment_and_check_usage(uuid, integer, text, uuid)'),
        ('service_role', 'public.reset_usage(uuid, text, text, uuid)')
) as rights (role, function) on rights.role = role.rolname
-- This is null before the first migration.
where not has_function_privilege(role.oid, to_regprocedure(rights.function), 'EXECUTE')
order by role.rolname;
