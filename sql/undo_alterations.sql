-- Undoes alterations if objects differ from what was installed. It revokes all rights on functions and the schema from
-- all but their owner, before the files grant them again, and drops triggers on tables of schema headroom whose
-- functions are not in it, before a row is written.
do $$
declare
    v_statement text;
begin
    if current_setting('headroom.is_restoring', true) is distinct from 'yes' then
        return;
    end if;
    for v_statement in
        select format('drop trigger %I on %s', trigger.tgname, trigger.tgrelid::regclass)
        from pg_trigger as trigger
        join pg_class as class on class.oid = trigger.tgrelid
        join pg_proc as function on function.oid = trigger.tgfoid
        where not trigger.tgisinternal and class.relnamespace = 'headroom'::regnamespace
            and function.pronamespace <> 'headroom'::regnamespace
        union all
        select distinct format(
            'revoke all on %s from %s cascade', objects.object, coalesce(quote_ident(role.rolname), 'public')
        )
        from (
            select format('routine %s', oid::regprocedure), proowner, proacl from pg_proc
            where pronamespace = 'headroom'::regnamespace
                or pronamespace = 'public'::regnamespace and proowner = 'headroom_owner'::regrole
            union all
            select 'schema headroom', nspowner, nspacl from pg_namespace where nspname = 'headroom'
        ) as objects (object, owner, acl)
        cross join lateral aclexplode(objects.acl) as grants
        left join pg_roles as role on role.oid = grants.grantee
        where grants.grantee <> objects.owner
    loop
        execute v_statement;
    end loop;
end
$$;
