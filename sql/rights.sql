-- Sets owners, and rights that concern all objects. It is applied before rights_on_message_usage.sql, if anything was
-- applied.
--
-- The file of a table or of a view in the schema grants the other rights on it.

-- All objects of the schema belong to headroom_owner, and so do the views in public. The file of each function in
-- public names its owner, because applications have functions there, too. An adopted message_usage keeps its owner.
do $$
declare
    v_owner constant oid := 'headroom_owner'::regrole;
    v_views constant regclass[] :=
        '{public.current_usage, public.monthly_usage, public.billing_period_report, public.audit_trail}';
    v_object text;
begin
    if (select nspowner from pg_namespace where nspname = 'headroom') <> v_owner then
        alter schema headroom owner to headroom_owner;
    end if;
    for v_object in
        select format(
            '%s %s', case relkind when 'v' then 'view' when 'S' then 'sequence' else 'table' end, oid::regclass
        )
        from pg_class
        where (relnamespace = 'headroom'::regnamespace and relkind in ('r', 'v', 'S') or oid = any(v_views))
            and relowner <> v_owner
            -- The sequence of an identity column follows its table.
            and not exists (
                select from pg_depend
                where classid = 'pg_class'::regclass and objid = pg_class.oid and deptype in ('a', 'i')
            )
        union all
        select format('routine %s', oid::regprocedure) from pg_proc
        where pronamespace = 'headroom'::regnamespace and proowner <> v_owner
        union all
        -- These are the types other than those of rows and arrays.
        select format('type %s', type.oid::regtype)
        from pg_type as type left join pg_class as class on class.oid = type.typrelid
        where type.typnamespace = 'headroom'::regnamespace and type.typowner <> v_owner and type.typcategory <> 'A'
            and coalesce(class.relkind, 'c') = 'c'
    loop
        execute format('alter %s owner to headroom_owner', v_object);
    end loop;
end
$$;
-- grant_create.sql has granted this right; distributed.sql grants it again if shards need it.
revoke create on schema public from headroom_owner;

do $$
declare
    v_functions constant text := (
        select string_agg(oid::regprocedure::text, ', ') from pg_proc
        where pronamespace = 'public'::regnamespace and proowner = 'headroom_owner'::regrole
    );
    v_views constant text :=
        'public.current_usage, public.monthly_usage, public.billing_period_report, public.audit_trail';
    -- End users read monthly_usage, too. They have no USAGE on the schema, so they cannot call its functions by name.
    v_called_for_users constant text := headroom.called_functions('{public.monthly_usage}');
    v_called constant text := headroom.called_functions(format('{%s}', v_views)::regclass[]);
    v_role text;
    v_type regtype;
begin
    -- PUBLIC has no rights. Supabase grants the roles of its clients all rights on each new object in public: the
    -- rights that these roles keep are granted below.
    for v_role in
        select 'public' union all
        select quote_ident(rolname) from pg_roles where rolname in ('anon', 'authenticated', 'service_role')
    loop
        execute format('revoke all on function %s from %s', v_functions, v_role);
        execute format('revoke all on %s from %s', v_views, v_role);
        execute format('revoke all on schema headroom from %s', v_role);
        execute format('revoke all on all tables in schema headroom from %s', v_role);
        execute format('revoke all on all sequences in schema headroom from %s', v_role);
        execute format('revoke all on all functions in schema headroom from %s', v_role);
    end loop;
    -- PUBLIC has USAGE on every new type, including row types. An array type follows its element type.
    for v_type in
        select oid::regtype from pg_type
        where typnamespace = 'headroom'::regnamespace and typcategory <> 'A'
            or oid = any(format('{public.message_usage, %s}', v_views)::regtype[])
    loop
        execute format('revoke all on type %s from public', v_type);
    end loop;
    grant usage on schema headroom to headroom_service, headroom_operator, headroom_dashboard;
    execute format('grant execute on function %s to headroom_operator, headroom_dashboard', v_called);
    execute format('grant select on %s to headroom_service, headroom_operator, headroom_dashboard', v_views);
    execute format(
        'grant execute on function %s, %s to headroom_operator', v_functions,
        headroom.called_functions('{headroom.part_usage_rows, headroom.usage_rows}')
    );
    -- These are for the commands of operators, and what triggers, checks and functions in PL/pgSQL call in their role.
    grant execute on function
        headroom.actor, headroom.begin_import, headroom.canonical_language, headroom.check_plan,
        headroom.check_store_name, headroom.create_token, headroom.import_batch, headroom.instant_text,
        headroom.is_instant, headroom.link_customer, headroom.lock_and_read_customer, headroom.map_entitlement,
        headroom.map_product, headroom.prune_billing_events, headroom.prune_keys, headroom.prune_notifications,
        headroom.record_refused_event, headroom.replay_notifications, headroom.restore_words,
        headroom.revoke_token, headroom.token_problem, headroom.unmap_entitlement, headroom.unmap_product,
        headroom.write_customer
    to headroom_operator;
    grant execute on function headroom.label_day, headroom.period_after, headroom.sortable_label, headroom.user_id
    to headroom_operator, headroom_dashboard;
    -- The service may execute everything. A trigger calls its function without this right.
    execute format('grant execute on function %s, %s to headroom_service', v_functions, (
        select string_agg(oid::regprocedure::text, ', ') from pg_proc
        where pronamespace = 'headroom'::regnamespace and prorettype <> 'trigger'::regtype
    ));
    -- `headroom migrate` creates these tables; psql does not.
    if to_regclass('headroom.migrations') is not null then
        grant select on headroom.migrations, headroom.definitions, headroom.installed_objects
        to headroom_service, headroom_operator;
    end if;

    -- End users count for themselves, and read their own rows. On Supabase, `authenticated` has these rights, `anon`
    -- none, and `service_role` those of a backend. They have them directly, because these roles do not inherit rights.
    for v_role in select rolname from pg_roles where rolname in ('headroom_user', 'authenticated') loop
        execute format(
            'grant execute on function %s, headroom.requesting_user(), headroom.requesting_period(), '
            'public.increment_and_check_usage(uuid, integer, text, uuid), '
            'public.increment_and_check_usage(uuid, text, integer), '
            'public.increment_and_check_usage(uuid, text, text) to %I', v_called_for_users, v_role
        );
        execute format('grant select on public.monthly_usage to %I', v_role);
    end loop;
    if exists (select from pg_roles where rolname = 'service_role') then
        execute format('grant execute on function %s to service_role', v_functions);
        execute format('grant select on %s to service_role', v_views);
        grant usage on headroom.generations, headroom.entitlement_versions to service_role;
        execute format(
            'grant execute on function %s, headroom.user_id(text), headroom.bucket_of(uuid) to service_role', v_called
        );
    end if;
end
$$;
