-- The rights on an adopted message_usage (0001_adopted_table.sql).
--
-- An existing table keeps its grants and policies. If it had no row level security, roles with grants still see all
-- rows. PUBLIC loses its rights, and clients of PostgREST see their own rows.
do $$
declare
    v_grantee name;
    v_sequence regclass;
begin
    for v_grantee in
        select distinct role.rolname
        from pg_catalog.pg_class as class
        cross join lateral (
            select grantee from pg_catalog.aclexplode(class.relacl)
            union all
            select column_grant.grantee
            from pg_catalog.pg_attribute as attribute
            cross join lateral pg_catalog.aclexplode(attribute.attacl) as column_grant
            where attribute.attrelid = class.oid
        ) as grants
        join pg_catalog.pg_roles as role on role.oid = grants.grantee
        where class.oid = 'public.message_usage'::regclass and not class.relrowsecurity
            and role.oid <> class.relowner and not role.rolsuper and not role.rolbypassrls
            and role.rolname not in (
                'anon', 'authenticated', 'headroom_owner', 'headroom_service', 'headroom_operator',
                'headroom_dashboard', 'headroom_user'
            )
    loop
        execute format(
            'create policy %I on public.message_usage to %I using (true) with check (true)',
            'kept for ' || v_grantee, v_grantee
        );
        -- An INSERT uses the sequences of the defaults.
        if pg_catalog.has_any_column_privilege(v_grantee, 'public.message_usage', 'INSERT') then
            execute format('grant usage on sequence headroom.generations, headroom.entitlement_versions to %I',
                v_grantee);
        end if;
    end loop;
    -- The table may use sequences of its own.
    for v_sequence in
        select distinct class.oid::regclass
        from pg_catalog.pg_attrdef as defaults
        join pg_catalog.pg_depend as dependency
            on dependency.classid = 'pg_catalog.pg_attrdef'::regclass and dependency.objid = defaults.oid
                and dependency.refclassid = 'pg_catalog.pg_class'::regclass
        join pg_catalog.pg_class as class on class.oid = dependency.refobjid and class.relkind = 'S'
        where defaults.adrelid = 'public.message_usage'::regclass and class.relnamespace <> 'headroom'::regnamespace
    loop
        execute format('grant usage on sequence %s to headroom_service, headroom_operator', v_sequence);
    end loop;
    if exists (
        select from pg_catalog.pg_class as class
        cross join lateral pg_catalog.aclexplode(class.relacl) as grants
        where class.oid = 'public.message_usage'::regclass and grants.grantee = 0
    ) then
        raise warning 'message_usage was open to PUBLIC and is not any more; grant headroom_dashboard to its readers';
        revoke all on public.message_usage from public;
    end if;
end
$$;
-- rights_on_message_usage.sql creates the policies and enables row level security. They stay when a schema headroom is
-- dropped.
drop policy if exists headroom_service on public.message_usage;
drop policy if exists headroom_operator on public.message_usage;
drop policy if exists headroom_user on public.message_usage;
