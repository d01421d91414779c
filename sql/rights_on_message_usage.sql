-- Sets row level security and rights of message_usage. It is applied last, if anything was applied. Statements that
-- lock the table are executed only if their effect is missing.

-- Policies
-- ---------------------------------------------------------------------------------------------------------
do $$
declare
    v_table constant regclass := 'public.message_usage';
    v_policy record;
begin
    for v_policy in
        select name, roles
        from (values
            ('headroom_service', 'headroom_service'), ('headroom_operator', 'headroom_operator'),
            ('headroom_user', headroom.user_roles()),
            -- Citus distributes no policy with a subquery.
            ('headroom_open_period', case when not headroom.is_distributed() then headroom.user_roles() end)
        ) as policies (name, roles)
        where roles is not null
    loop
        -- A policy that differs from the installed one is replaced.
        if current_setting('headroom.is_restoring', true) = 'yes' or (
            select string_agg(rolname, ', ' order by rolname desc)
            from pg_policy join pg_roles on pg_roles.oid = any(polroles)
            where polrelid = v_table and polname = v_policy.name
        ) is distinct from v_policy.roles then
            execute format('drop policy if exists %I on %s', v_policy.name, v_table);
            if v_policy.name = 'headroom_user' then
                perform headroom.create_user_policy();
            elsif v_policy.name = 'headroom_open_period' then
                -- Users see only the row of the open period among their own rows, even if a policy of the application
                -- shows them all. The functions are called once per statement.
                execute format(
                    'create policy headroom_open_period on %s as restrictive for select to %s using ('
                    'user_id is distinct from (select headroom.requesting_user()) '
                    'or billing_period = (select headroom.requesting_period()))',
                    v_table, v_policy.roles
                );
            else
                execute format(
                    'create policy %1$I on %2$s to %1$I using (true) with check (true)', v_policy.name, v_table
                );
            end if;
        end if;
    end loop;
    if not (select relrowsecurity from pg_class where oid = v_table) then
        alter table public.message_usage enable row level security;
    end if;
end
$$;

-- Rights
-- ---------------------------------------------------------------------------------------------------------
grant select, insert, update, delete on public.message_usage to headroom_service, headroom_operator;
grant select on public.message_usage to headroom_user;
do $$
declare
    v_right record;
begin
    -- Row level security restricts none of these rights: TRUNCATE is not recorded, a trigger runs in the role that
    -- counts, and a role that may change some row may lock the table. PostgREST's roles keep the rights that a policy
    -- lets them use.
    for v_right in
        select grants.privilege_type as name, coalesce(quote_ident(role.rolname), 'public') as grantee
        from pg_class as class
        cross join lateral aclexplode(class.relacl) as grants
        left join pg_roles as role on role.oid = grants.grantee
        where class.oid = 'public.message_usage'::regclass and grants.grantee <> class.relowner and (
            grants.privilege_type not in ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
            or coalesce(role.rolname, 'public') in ('public', 'anon', 'authenticated') and not exists (
                select from pg_policy
                where polrelid = class.oid and polpermissive and polroles && array[0::oid, grants.grantee]
                    and polcmd in ('*', case grants.privilege_type
                        when 'SELECT' then 'r' when 'INSERT' then 'a' when 'UPDATE' then 'w' else 'd'
                    end)
            )
        )
    loop
        execute format('revoke %s on public.message_usage from %s cascade', v_right.name, v_right.grantee);
    end loop;
    if exists (select from pg_roles where rolname = 'authenticated') then
        grant select on public.message_usage to authenticated;
    end if;
    if exists (select from pg_roles where rolname = 'service_role') then
        grant select, insert, update, delete on public.message_usage to service_role;
    end if;
end
$$;
