-- Rights that concern all objects. Applied last, if anything was applied.
--
-- The file of a table, view or function grants the other rights on it.

-- Granted by grant_create.sql.
revoke create on schema headroom, public from headroom_service;

do $$
declare
    v_functions constant text := (
        select string_agg(oid::regprocedure::text, ', ') from pg_proc
        where pronamespace = 'public'::regnamespace and proowner = 'headroom_service'::regrole
    );
    v_views constant text := 'public.monthly_usage, public.billing_period_report, public.audit_trail';
    v_role text;
    v_type regtype;
begin
    -- PUBLIC has no rights. Supabase grants the roles of its clients all rights on each new object in public: the
    -- rights that these roles keep are granted below.
    for v_role in
        select 'public' union all select quote_ident(rolname) from pg_roles where rolname in ('anon', 'authenticated')
    loop
        execute format('revoke all on function %s from %s', v_functions, v_role);
        execute format('revoke all on %s from %s', v_views, v_role);
        execute format('revoke all on schema headroom from %s', v_role);
        execute format('revoke all on all tables in schema headroom from %s', v_role);
        execute format('revoke all on all sequences in schema headroom from %s', v_role);
        execute format('revoke all on all functions in schema headroom from %s', v_role);
        -- Row level security does not restrict these.
        execute format('revoke truncate, references, trigger on public.message_usage from %s', v_role);
    end loop;
    -- PUBLIC has USAGE on every new type, also on row types. An array type follows its element type.
    for v_type in
        select oid::regtype from pg_type
        where typnamespace = 'headroom'::regnamespace and typcategory <> 'A'
            or oid = any(format('{public.message_usage, %s}', v_views)::regtype[])
    loop
        execute format('revoke all on type %s from public', v_type);
    end loop;
    -- A function without SECURITY DEFINER has the rights of its caller. headroom_service owns the others.
    execute format('grant execute on function %s to headroom_service', (
        select string_agg(oid::regprocedure::text, ', ') from pg_proc
        where pronamespace = 'headroom'::regnamespace and not prosecdef
    ));
    -- `headroom migrate` creates these tables; psql does not.
    if to_regclass('headroom.migrations') is not null then
        grant select on headroom.migrations, headroom.definitions to headroom_service, headroom_operator;
    end if;

    -- On Supabase, `authenticated` has the rights of headroom_user, `anon` none, and `service_role` those of a backend.
    -- They are granted directly, because these roles do not inherit rights.
    if exists (select from pg_roles where rolname = 'authenticated') then
        grant select on public.message_usage to authenticated;
        grant execute on function
            headroom.requesting_user(),
            public.increment_and_check_usage(uuid, integer), public.increment_and_check_usage(uuid, text, integer)
        to authenticated;
        -- Only once, because it locks the table.
        if not exists (
            select from pg_policy
            where polrelid = 'public.message_usage'::regclass and polname = 'headroom_user'
                and 'authenticated'::regrole = any(polroles)
        ) then
            alter policy headroom_user on public.message_usage to headroom_user, authenticated;
        end if;
    end if;
    if exists (select from pg_roles where rolname = 'service_role') then
        execute format('grant execute on function %s to service_role', v_functions);
        execute format('grant select on %s to service_role', v_views);
        grant select, insert, update, delete on public.message_usage to service_role;
        grant usage on headroom.generations, headroom.entitlement_versions to service_role;
        grant execute on function
            headroom.now(), headroom.bucket_of(uuid), headroom.held_messages(uuid, text, integer),
            headroom.active_holds(uuid, text, timestamptz), headroom.tier_of(bigint, bigint, integer, integer),
            headroom.change_text(jsonb, jsonb)
        to service_role;
    end if;
end
$$;
