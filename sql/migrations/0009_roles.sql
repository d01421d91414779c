-- Who may do what.
--
-- Four roles, made by sql/roles.sql, which stands here again: headroom_service, as which the service works and to which
-- the functions belong that change something; headroom_operator for people in psql; headroom_dashboard for what only
-- reads views; headroom_user for end users, who see the own row. Nobody else may do anything, PUBLIC least of all. A
-- later migration grants what it adds in the same way, and takes it from PUBLIC, which has rights on each new function
-- and type.

-- Roles ---------------------------------------------------------------------------------------------------------------

do $roles$
declare
    v_role text;
    v_act_as constant text := case
        when current_setting('server_version_num')::integer < 160000 then 'MEMBER'
        else 'SET'
    end;
    v_login text;
begin
    foreach v_role in array array['headroom_service', 'headroom_operator', 'headroom_dashboard', 'headroom_user'] loop
        if exists (select from pg_catalog.pg_roles where rolname = v_role) then
            continue;
        end if;
        begin
            execute format('create role %I nologin', v_role);
        exception
            when duplicate_object or unique_violation then
                -- Another database of this cluster is being migrated at the same moment.
                null;
            when insufficient_privilege then
                raise exception 'role % does not exist, and % may not make it', v_role, current_user
                    using errcode = 'insufficient_privilege',
                        hint = 'Have an administrator run: headroom roles | psql ' || quote_ident(current_database());
        end;
    end loop;
    -- Whoever migrates hands functions over to headroom_service, and so must be able to act as it: the one who runs
    -- this, and the owner of the database, for whom an administrator may be running it.
    for v_login in
        select rolname from pg_catalog.pg_roles
        where rolname = current_user
            or oid = (select datdba from pg_catalog.pg_database where datname = current_database())
    loop
        continue when pg_catalog.pg_has_role(v_login, 'headroom_service', v_act_as);
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
    end loop;
end
$roles$;

-- End users -----------------------------------------------------------------------------------------------------------

-- The user on whose behalf PostgREST or Supabase runs this statement; null when nobody is signed in. auth.uid() decides
-- where there is one that may be called, else the claims that PostgREST sets for each request (one setting since its
-- version 9, before that one for each claim). A subject that is no uuid is nobody here.
create function headroom.requesting_user() returns uuid
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_subject text;
begin
    if exists (
        select from pg_proc as function
        join pg_namespace as namespace on namespace.oid = function.pronamespace
        where namespace.nspname = 'auth' and function.proname = 'uid' and function.pronargs = 0
            and function.prorettype = 'uuid'::regtype
            and has_schema_privilege(namespace.oid, 'USAGE') and has_function_privilege(function.oid, 'EXECUTE')
    ) then
        -- Dynamic, because a function that may not be there cannot be named.
        execute 'select auth.uid()::text' into v_subject;
    else
        v_subject := coalesce(
            nullif(current_setting('request.jwt.claim.sub', true), ''),
            nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub'
        );
    end if;
    return case
        when v_subject ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then v_subject::uuid
    end;
end
$$;

-- Refuses to count for somebody else. Whoever may reset everybody's usage may count for everybody; all others count for
-- themselves.
--
-- The caller is the role that was set (PostgREST sets one for each request), else who logged in, because inside a
-- SECURITY DEFINER function current_user is its owner.
create function headroom.check_caller(p_user_id uuid, p_billing_period text) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_caller constant name := coalesce(nullif(current_setting('role', true), 'none'), session_user);
    v_user_id uuid;
begin
    if has_function_privilege(v_caller, 'public.reset_usage(uuid, text)', 'EXECUTE') then
        return;
    end if;
    v_user_id := headroom.requesting_user();
    if v_user_id is null then
        raise exception 'nobody is signed in, and % may count for nobody else', v_caller
            using errcode = 'insufficient_privilege', hint = format(
                'A client brings a token whose sub is its user''s id. A backend needs: grant headroom_service to %I',
                v_caller
            );
    elsif p_user_id is distinct from v_user_id then
        raise exception '% may count for the own user only', v_caller
            using errcode = 'insufficient_privilege', hint = format(
                'p_user_id must be the sub of the token. A backend needs: grant headroom_service to %I', v_caller
            );
    elsif headroom.is_month(p_billing_period) and p_billing_period
        > headroom.month_label(((headroom.now() + interval '14 hours') at time zone 'UTC')::date) then
        -- A row for a coming month would begin that month, with a new allowance. No clock is more than 14 hours ahead
        -- of UTC.
        raise exception 'p_billing_period has not begun' using errcode = 'insufficient_privilege';
    end if;
end
$$;

-- What CONSUME does; end users count for themselves.
create or replace function public.increment_and_check_usage(p_user_id uuid, p_messages integer default 1)
    returns headroom.answer
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform headroom.check_caller(p_user_id, null);
    if p_user_id is null then
        raise exception 'p_user_id is null: pass the user''s uuid' using errcode = 'null_value_not_allowed';
    elsif p_messages is null or p_messages not between 1 and 1000000 then
        raise exception 'p_messages must be 1 to 1000000' using errcode = 'invalid_parameter_value';
    end if;
    return headroom.answer_to(
        p_user_id,
        (headroom.perform(
            p_user_id, array['consume'], array[p_messages], array[null::text], array[null::integer],
            headroom.unknown_users()
        ))[1],
        p_messages
    );
end
$$;

-- The form for callers that bring their own period and limit counts as before, behind the same check.
alter function public.increment_and_check_usage(uuid, text, integer) set schema headroom;
alter function headroom.increment_and_check_usage(uuid, text, integer) rename to count_in_period;
create function public.increment_and_check_usage(
    p_user_id uuid, p_billing_period text, p_limit integer
) returns jsonb
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform headroom.check_caller(p_user_id, p_billing_period);
    return headroom.count_in_period(p_user_id, p_billing_period, p_limit);
end
$$;

-- Functions -----------------------------------------------------------------------------------------------------------

-- Those that change something run as headroom_service, whoever calls them: the callers need no right on any table, and
-- what they change is not taken for a change by hand. So do the triggers, or they would need what they write to be
-- granted to whoever writes a row; and holds_of, which a view looks up holds with. No function is marked so that the
-- hot statements have inlined: that would end the inlining.
do $$
declare
    v_function regprocedure;
    v_schema text;
    v_granted text[] := '{}';
begin
    -- Temporary objects come first where the path does not name them: a caller's own type "uuid" would be taken for
    -- the real one.
    for v_function in
        select oid::regprocedure from pg_catalog.pg_proc
        where pronamespace = 'headroom'::regnamespace and proconfig = array['search_path=pg_catalog']
    loop
        execute format('alter function %s set search_path = pg_catalog, pg_temp', v_function);
    end loop;

    -- Handing a function over needs the right to create in its schema, for the new owner: for this moment only.
    foreach v_schema in array array['headroom', 'public'] loop
        if not pg_catalog.has_schema_privilege('headroom_service', v_schema, 'CREATE') then
            execute format('grant create on schema %I to headroom_service', v_schema);
            v_granted := v_granted || v_schema;
        end if;
    end loop;
    for v_function in
        select oid::regprocedure from pg_catalog.pg_proc
        where pronamespace = 'headroom'::regnamespace and prorettype = 'pg_catalog.trigger'::regtype
        union all
        select unnest(array[
            'headroom.holds_of(uuid, text, timestamptz)', 'headroom.prune_keys(interval, integer)',
            'public.increment_and_check_usage(uuid, integer)', 'public.increment_and_check_usage(uuid, text, integer)',
            'public.reset_usage(uuid, text)', 'public.reset_billing_period(text)',
            'public.set_plan(uuid, text, text, timestamptz, timestamptz, timestamptz, integer)',
            'public.grant_messages(uuid, integer, text, text)', 'public.forget_user(uuid)',
            'public.apply_store_event(jsonb)'
        ]::regprocedure[])
    loop
        execute format('alter function %s security definer set search_path = pg_catalog, pg_temp', v_function);
        execute format('alter function %s owner to headroom_service', v_function);
    end loop;
    foreach v_schema in array v_granted loop
        execute format('revoke create on schema %I from headroom_service', v_schema);
    end loop;
end
$$;

-- Rights --------------------------------------------------------------------------------------------------------------

-- Nothing for PUBLIC. Row types of tables come with a right to use them as well.
revoke all on schema headroom from public;
revoke all on all tables in schema headroom from public;
revoke all on all sequences in schema headroom from public;
revoke all on all functions in schema headroom from public;
do $$
declare
    v_function regprocedure;
    v_type regtype;
begin
    for v_function in
        select oid::regprocedure from pg_catalog.pg_proc
        where pronamespace = 'public'::regnamespace and proowner = 'headroom_service'::regrole
    loop
        execute format('revoke all on function %s from public', v_function);
    end loop;
    -- An array's rights are those of its elements.
    for v_type in
        select type.oid::regtype from pg_catalog.pg_type as type
        where type.typnamespace = 'headroom'::regnamespace and type.typcategory <> 'A'
    loop
        execute format('revoke all on type %s from public', v_type);
    end loop;
end
$$;
revoke all on public.monthly_usage, public.billing_period_report, public.user_story from public;
revoke all on type public.message_usage, public.monthly_usage, public.billing_period_report, public.user_story
from public;

-- The service: what the statements of sql/queries name, and what the functions that belong to it do. It cannot change a
-- plan, nor what the audit log says; to forget a user it deletes there.
grant usage on schema headroom to headroom_service;
grant execute on all functions in schema headroom to headroom_service;
grant usage on all sequences in schema headroom to headroom_service;
grant select, insert, update, delete on
    public.message_usage, headroom.subscribers, headroom.subscriptions, headroom.message_keys, headroom.lane_receipts,
    headroom.store_events
to headroom_service;
grant select, insert, delete on headroom.audit_log, headroom.grants, headroom.spent_trials to headroom_service;
grant select, update on headroom.plan_revision to headroom_service;
grant select on headroom.plans, headroom.words, headroom.secrets to headroom_service;
-- Which migrations are applied; `headroom migrate` makes this table before the first one, psql does not.
do $$
begin
    if to_regclass('headroom.migrations') is not null then
        grant select on headroom.migrations to headroom_service;
    end if;
end
$$;
grant select on public.monthly_usage, public.billing_period_report, public.user_story to headroom_service;

-- Operators: everything is read but the secret, what a person decides is written, and each change leaves a row in the
-- audit log, which nobody writes by hand.
grant usage on schema headroom to headroom_operator;
grant select on all tables in schema headroom to headroom_operator;
revoke select on headroom.secrets, headroom.spent_trials from headroom_operator;
grant select, insert, update, delete on
    public.message_usage, headroom.plans, headroom.subscribers, headroom.subscriptions
to headroom_operator;
grant usage on headroom.generations, headroom.terms_versions to headroom_operator;
grant execute on function
    public.increment_and_check_usage(uuid, integer), public.increment_and_check_usage(uuid, text, integer),
    public.reset_usage(uuid, text), public.reset_billing_period(text),
    public.set_plan(uuid, text, text, timestamptz, timestamptz, timestamptz, integer),
    public.grant_messages(uuid, integer, text, text), public.forget_user(uuid), public.apply_store_event(jsonb),
    headroom.prune_keys(interval, integer)
to headroom_operator;

-- Dashboards: the views. They read the tables as their owner, but call functions as whoever reads them.
grant select on public.monthly_usage, public.billing_period_report, public.user_story
to headroom_dashboard, headroom_operator;
grant execute on function
    headroom.now(), headroom.held_now(public.message_usage), headroom.holds_of(uuid, text, timestamptz),
    headroom.tier_of(bigint, bigint, integer, integer), headroom.change_text(jsonb, jsonb)
to headroom_dashboard, headroom_operator;

-- End users: the own row, and counting for themselves. This role is for clients behind PostgREST, which says who they
-- are; with a login of their own they could say that they are anybody.
grant select on public.message_usage to headroom_user;
grant execute on function
    headroom.requesting_user(),
    public.increment_and_check_usage(uuid, integer), public.increment_and_check_usage(uuid, text, integer)
to headroom_user;

-- Changes by hand -----------------------------------------------------------------------------------------------------

-- The functions record what they do themselves. Comparing the role is all that a counted message pays for this. In the
-- order in which the functions lock these tables.
create trigger record_change_by_hand after insert or update or delete on headroom.subscribers
    for each row when (current_user <> 'headroom_service') execute function headroom.record_change_by_hand();
create trigger record_change_by_hand after insert or update or delete on headroom.subscriptions
    for each row when (current_user <> 'headroom_service') execute function headroom.record_change_by_hand();
create trigger record_change_by_hand after insert or update or delete on public.message_usage
    for each row when (current_user <> 'headroom_service') execute function headroom.record_change_by_hand();

-- Rows ----------------------------------------------------------------------------------------------------------------

-- A table that was there before keeps its grants and policies. Where it had no row level security, everybody who was
-- granted something goes on seeing all rows; only PUBLIC does not, and the clients of PostgREST see the own row.
do $$
declare
    v_grantee name;
    v_policy name;
    v_sequence regclass;
begin
    select polname into v_policy from pg_catalog.pg_policy
    where polrelid = 'public.message_usage'::regclass and not polpermissive and polroles = '{0}';
    if found then
        raise exception 'the restrictive policy % on message_usage concerns every role, also headroom_service',
            quote_ident(v_policy)
            using hint = format(
                'Name the roles that it is for, alter policy %I on message_usage to …, and migrate again.', v_policy
            );
    end if;
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
                'anon', 'authenticated', 'headroom_service', 'headroom_operator', 'headroom_dashboard', 'headroom_user'
            )
    loop
        execute format(
            'create policy %I on public.message_usage to %I using (true) with check (true)',
            'kept for ' || v_grantee, v_grantee
        );
        -- A row that is inserted is numbered.
        if pg_catalog.has_any_column_privilege(v_grantee, 'public.message_usage', 'INSERT') then
            execute format('grant usage on sequence headroom.generations, headroom.terms_versions to %I', v_grantee);
        end if;
    end loop;
    -- It may number its rows in a column of its own as well.
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
        raise warning 'message_usage was open to PUBLIC and is not any more; grant headroom_dashboard to who reads it';
        revoke all on public.message_usage from public;
    end if;
end
$$;
create policy headroom_service on public.message_usage to headroom_service using (true) with check (true);
create policy headroom_operator on public.message_usage to headroom_operator using (true) with check (true);
-- As a subquery it is asked once for a statement, not for each row.
create policy headroom_user on public.message_usage for select to headroom_user
    using (user_id = (select headroom.requesting_user()));
alter table public.message_usage enable row level security;

-- Supabase ------------------------------------------------------------------------------------------------------------

-- There each function, table and view in public is open to three roles from the moment it is made. The two of the
-- clients keep what headroom_user has; the backends' one gets what a backend calls. Directly, because none of them
-- inherits the rights of a role that it is granted.
do $$
declare
    v_functions constant text := (
        select string_agg(oid::regprocedure::text, ', ') from pg_catalog.pg_proc
        where pronamespace = 'public'::regnamespace and proowner = 'headroom_service'::regrole
    );
    v_views constant text := 'public.monthly_usage, public.billing_period_report, public.user_story';
    v_client name;
begin
    for v_client in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated') loop
        execute format('revoke all on function %s from %I', v_functions, v_client);
        execute format('revoke all on %s from %I', v_views, v_client);
        execute format('revoke all on schema headroom from %I', v_client);
        execute format('revoke all on all tables in schema headroom from %I', v_client);
        execute format('revoke all on all sequences in schema headroom from %I', v_client);
        execute format('revoke all on all functions in schema headroom from %I', v_client);
        -- What row level security does not hold back.
        execute format('revoke truncate, references, trigger on public.message_usage from %I', v_client);
    end loop;
    if exists (select from pg_catalog.pg_roles where rolname = 'authenticated') then
        grant select on public.message_usage to authenticated;
        grant execute on function
            headroom.requesting_user(),
            public.increment_and_check_usage(uuid, integer), public.increment_and_check_usage(uuid, text, integer)
        to authenticated;
        alter policy headroom_user on public.message_usage to headroom_user, authenticated;
    end if;
    if exists (select from pg_catalog.pg_roles where rolname = 'service_role') then
        execute format('grant execute on function %s to service_role', v_functions);
        execute format('grant select on %s to service_role', v_views);
        grant select, insert, update, delete on public.message_usage to service_role;
        grant usage on headroom.generations, headroom.terms_versions to service_role;
        grant execute on function
            headroom.now(), headroom.held_now(public.message_usage), headroom.holds_of(uuid, text, timestamptz),
            headroom.tier_of(bigint, bigint, integer, integer), headroom.change_text(jsonb, jsonb)
        to service_role;
    end if;
end
$$;
