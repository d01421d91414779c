-- Writes the statements that create Headroom's roles, and the logins that are members of them, on another server of
-- the same cluster, with their passwords. Headroom's roles can log in there: a server of Citus connects to another in
-- the role of the statement that it passes on.
with names (name) as (
    values ('headroom_owner'), ('headroom_service'), ('headroom_operator'), ('headroom_dashboard'), ('headroom_user')
), roles as (
    select
        role.oid, role.rolname as name, secret.rolpassword as password, role.rolinherit as inherits,
        role.rolcanlogin or role.rolname in (select names.name from names) as has_login
    from pg_roles as role
    join pg_authid as secret on secret.oid = role.oid
    where not role.rolsuper and exists (
        select from names where pg_has_role(role.oid, to_regrole(names.name)::oid, 'MEMBER')
    )
)
select array_agg(statement order by step, statement) as statements
from (
    select
        1 as step, format(
            'do $do$ begin if to_regrole(%1$L) is null then create role %2$I; end if; end $do$', quote_ident(name), name
        ) as statement
    from roles
    union all
    select
        2 as step, format(
            'alter role %I %s %s password %L', name, case when has_login then 'login' else 'nologin' end,
            case when inherits then 'inherit' else 'noinherit' end, password
        ) as statement
    from roles
    union all
    select 3 as step, format('grant %I to %I', granted.name, member.name) as statement
    from pg_auth_members as membership
    join roles as granted on granted.oid = membership.roleid
    join roles as member on member.oid = membership.member
) as steps;
