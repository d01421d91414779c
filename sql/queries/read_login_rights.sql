-- Reads what the login may do. It may migrate if it has the rights of the schema's owner, may give them to itself, or
-- there is no schema yet; it may serve if it may act as the service's role. $1 text: the service's role. Since
-- PostgreSQL 16, a member of a role may be forbidden to act as it, and only a login that administers a role may grant
-- it.
select
    current_user::text as login,
    namespace.owner::text,
    namespace.owner is null or pg_catalog.pg_has_role(namespace.owner, 'USAGE') or (
        pg_catalog.has_database_privilege(current_database(), 'CREATE')
        and case
            when current_setting('server_version_num')::integer < 160000
                then (select login.rolcreaterole from pg_catalog.pg_roles as login where login.rolname = current_user)
            else pg_catalog.pg_has_role(namespace.owner, 'MEMBER WITH ADMIN OPTION')
        end
    ) as may_migrate,
    coalesce((
        select pg_catalog.pg_has_role(
            role.oid, case when current_setting('server_version_num')::integer < 160000 then 'MEMBER' else 'SET' end
        )
        from pg_catalog.pg_roles as role
        where role.rolname = $1::text
    ), false) as may_serve
from (
    select (
        select pg_catalog.pg_get_userbyid(nspowner) from pg_catalog.pg_namespace where nspname = 'headroom'
    ) as owner
) as namespace;
