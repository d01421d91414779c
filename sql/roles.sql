-- Creates Headroom's roles. `headroom migrate` executes this itself if its login may create roles. Otherwise an
-- administrator (CREATEROLE, or a superuser) executes it in Headroom's database before `headroom migrate`, and in a new
-- cluster before a dump is restored:
--
--     headroom roles | psql DATABASE
--
-- It can be executed again. Roles belong to the whole cluster; `headroom migrate` grants their rights in each database.
-- None of them can log in: create logins and grant them the roles that they need:
--
--     create role backend login;    grant headroom_service to backend;      -- headroom serve
--     create role ann login;        grant headroom_operator to ann;         -- psql
--     create role grafana login;    grant headroom_dashboard to grafana;    -- views

do $roles$
declare
    -- Schema-qualified, because types are resolved before the first statement is executed.
    v_role pg_catalog.text;
    v_act_as pg_catalog.text;
    v_login pg_catalog.text;
begin
    -- First of all: a function that was planted in a schema of the caller's path may match a call better than
    -- PostgreSQL's own function.
    set local search_path = pg_catalog, pg_temp;
    v_act_as := case when current_setting('server_version_num')::integer < 160000 then 'MEMBER' else 'SET' end;
    foreach v_role in array array['headroom_service', 'headroom_operator', 'headroom_dashboard', 'headroom_user'] loop
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
    -- `headroom migrate` makes headroom_service the owner of functions, and so must be able to act as it. The grantees
    -- are the current user and the owner of the database, for whom an administrator may be executing this.
    for v_login in
        select rolname from pg_catalog.pg_roles
        where rolname = current_user
            or oid = (select datdba from pg_catalog.pg_database where datname = current_database())
    loop
        continue when pg_has_role(v_login, 'headroom_service', v_act_as)
            and pg_has_role(v_login, 'headroom_service', 'USAGE');
        begin
            execute format('grant headroom_service to %I', v_login);
        exception
            when unique_violation then
                null;
            when insufficient_privilege then
                continue when v_login <> current_user;
                raise exception '% may not act as headroom_service, to which functions are handed over', v_login
                    using errcode = 'insufficient_privilege',
                        hint = format('Have an administrator run: grant headroom_service to %I', v_login);
        end;
        if v_login = current_user and not pg_has_role(v_login, 'headroom_service', 'USAGE') then
            raise exception '% does not inherit the rights of headroom_service, which owns functions', v_login
                using errcode = 'insufficient_privilege',
                    hint = format('Have an administrator run: alter role %I inherit', v_login);
        end if;
    end loop;
end
$roles$;
