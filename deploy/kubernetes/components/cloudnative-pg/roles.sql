-- Creates Headroom's roles. `headroom migrate` executes this itself if its login may create roles. Otherwise an
-- administrator (CREATEROLE, or a superuser) executes it in Headroom's database before `headroom migrate`, and in a new
-- cluster before a dump is restored:
--
--     headroom roles | psql DATABASE
--
-- It can be executed again. Roles belong to the whole cluster; `headroom migrate` grants their rights in each database.
-- None of them can log in: create logins and grant them the roles that they need. headroom_owner owns Headroom's
-- objects. Grant it to nobody: its members can replace functions, and remove the audit log's triggers.
--
--     create role backend login;    grant headroom_service to backend;      -- headroom serve
--     create role ann login;        grant headroom_operator to ann;         -- psql
--     create role grafana login;    grant headroom_dashboard to grafana;    -- views

do $roles$
declare
    -- The types are schema-qualified, because they are resolved before the first statement is executed.
    v_role pg_catalog.text;
    v_act_as pg_catalog.text;
    v_login pg_catalog.record;
begin
    -- This comes first: a function that was planted in a schema of the caller's path may match a call better than
    -- PostgreSQL's own function.
    set local search_path = pg_catalog, pg_temp;
    v_act_as := case when current_setting('server_version_num')::integer < 160000 then 'MEMBER' else 'SET' end;
    foreach v_role in array array[
        'headroom_owner', 'headroom_service', 'headroom_operator', 'headroom_dashboard', 'headroom_user'
    ] loop
        if exists (select from pg_catalog.pg_roles where rolname = v_role) then
            continue;
        end if;
        begin
            execute format('create role %I nologin', v_role);
        exception
            when duplicate_object or unique_violation then
                -- Another database of this cluster is being migrated at the same time.
                null;
            when insufficient_privilege then
                raise exception 'role % does not exist, and % may not make it', v_role, current_user
                    using errcode = 'insufficient_privilege',
                        hint = 'Have an administrator run: headroom roles | psql ' || quote_ident(current_database());
        end;
    end loop;
    -- The functions of the owner do what the service does, even in an adopted table with policies and triggers.
    if not pg_has_role('headroom_owner', 'headroom_service', 'USAGE') then
        begin
            grant headroom_service to headroom_owner;
        exception
            when unique_violation then
                null;
        end;
    end if;
    -- The grantees are the current user and the owner of the database, for whom an administrator may be executing this.
    -- Both may serve, and change data in psql.
    for v_login in
        select
            login.rolname as name, granted.role, granted.role = 'headroom_owner' as is_owner
        from pg_catalog.pg_roles as login
        cross join unnest(array['headroom_service', 'headroom_operator', 'headroom_owner']) as granted (role)
        where login.rolname = current_user
            or login.oid = (select datdba from pg_catalog.pg_database where datname = current_database())
    loop
        continue when pg_has_role(v_login.name, v_login.role, v_act_as)
            and pg_has_role(v_login.name, v_login.role, 'USAGE');
        -- A login that may create roles becomes a member for each migration only, by become_owner.sql.
        continue when v_login.is_owner and (
            v_login.name = current_user or (select rolcreaterole from pg_catalog.pg_roles where rolname = v_login.name)
        );
        begin
            execute format('grant %I to %I', v_login.role, v_login.name);
        exception
            when unique_violation then
                null;
            when insufficient_privilege then
                continue when v_login.name <> current_user;
                raise exception '% may not act as %', v_login.name, v_login.role
                    using errcode = 'insufficient_privilege',
                        hint = format(
                            'Have an administrator run: '
                            'grant headroom_owner, headroom_service, headroom_operator to %I', v_login.name
                        );
        end;
        if v_login.name = current_user and not pg_has_role(v_login.name, v_login.role, 'USAGE') then
            raise exception '% does not inherit the rights of %', v_login.name, v_login.role
                using errcode = 'insufficient_privilege',
                    hint = 'Migrate with a login that inherits the rights of its roles. That of PostgREST must not.';
        end if;
    end loop;
end
$roles$;
