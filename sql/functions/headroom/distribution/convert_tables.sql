-- Makes the tables of users and the reference tables tables of Citus. Their rows stay on this machine for now, the
-- coordinator. A superuser calls it in a transaction of its own, which locks the tables, and then has all functions and
-- views defined again, on each machine.
create or replace function headroom.convert_tables() returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_table regclass;
    v_object record;
    v_statement text;
    v_view regclass;
    v_views regclass[];
    v_left regclass[];
    v_definition text[];
    v_definitions text[] := '{}';
    v_later text[];
    v_keys text[] := '{}';
    v_types text;
begin
    -- Nothing is counted while the tables change. This order keeps two transactions from waiting for each other: lanes
    -- that count lock receipts first, and those that read message_usage.
    lock table headroom.lane_receipts, public.message_usage, headroom.subscribers in access exclusive mode;
    -- Views are created again below: for each table, Citus follows what depends on each view, which took ten times as
    -- long as the rest. A view that another one selects from is dropped after that.
    v_left := array(
        select oid from pg_class
        where relkind = 'v' and relowner = 'headroom_owner'::regrole
            and relnamespace in ('public'::regnamespace, 'headroom'::regnamespace)
    );
    loop
        v_views := v_left;
        v_left := '{}';
        foreach v_view in array v_views loop
            v_definition := headroom.view_definition(v_view);
            begin
                execute format('drop view %s', v_view);
                v_definitions := v_definition || v_definitions;
            exception
                when dependent_objects_still_exist then
                    v_left := v_left || v_view;
            end;
        end loop;
        -- The rest has views of another owner, and stays.
        exit when cardinality(v_left) in (0, cardinality(v_views));
    end loop;
    drop policy if exists headroom_user on public.message_usage;
    drop policy if exists headroom_open_period on public.message_usage;

    -- Converting the table that a foreign key refers to would convert the other one, into a table of this machine.
    for v_object in
        select conname as name, conrelid::regclass as table, pg_get_constraintdef(oid) as definition from pg_constraint
        where contype = 'f' and not headroom.is_citus_table(conrelid)
            and conrelid = any(headroom.reference_tables()::regclass[])
    loop
        v_keys := v_keys
            || format('alter table %s add constraint %I %s', v_object.table, v_object.name, v_object.definition);
        execute format('alter table %s drop constraint %I', v_object.table, v_object.name);
    end loop;
    foreach v_table in array headroom.reference_tables()::regclass[] loop
        continue when headroom.is_citus_table(v_table);
        -- Copying the rows changes no plan and no sentence, so it fires no triggers.
        v_later := '{}';
        for v_object in
            select tgname as name, pg_get_triggerdef(oid) as definition from pg_trigger
            where tgrelid = v_table and not tgisinternal
        loop
            v_later := v_later || v_object.definition;
            execute format('drop trigger %I on %s', v_object.name, v_table);
        end loop;
        perform create_reference_table(v_table);
        foreach v_statement in array v_later loop
            execute v_statement;
        end loop;
    end loop;
    foreach v_statement in array v_keys loop
        execute v_statement;
    end loop;

    -- Citus gives the workers each type that a function takes or returns, but not those that functions use inside.
    select string_agg(type.oid::regtype::text, ', ') into v_types
    from pg_type as type join pg_class as class on class.oid = type.typrelid
    where type.typnamespace = 'headroom'::regnamespace and class.relkind = 'c';
    execute format('create function headroom.take_types(%s) returns void language sql return null', v_types);
    execute format('drop function headroom.take_types(%s)', v_types);

    -- These functions return rows of a table; afterwards they return those of the new table with its name.
    v_later := '{}';
    for v_object in
        select function.oid::regprocedure::text as name, pg_get_functiondef(function.oid) as definition
        from pg_proc as function join pg_type as type on type.oid = function.prorettype
        where function.pronamespace = 'headroom'::regnamespace
            and type.typrelid = any(headroom.distributed_tables()::regclass[])
    loop
        v_later := v_later || array[
            v_object.definition,
            format('alter function %s owner to headroom_owner', v_object.name),
            format('revoke execute on function %s from public', v_object.name),
            format('grant execute on function %s to headroom_service', v_object.name)
        ];
        execute format('drop function %s', v_object.name);
    end loop;
    foreach v_table in array headroom.distributed_tables()::regclass[] loop
        continue when headroom.is_citus_table(v_table);
        -- This renames the table, which becomes the shard, and creates an empty one with its name.
        perform citus_add_local_table_to_metadata(v_table, cascade_via_foreign_keys => true);
    end loop;
    foreach v_statement in array v_later || v_definitions loop
        execute v_statement;
    end loop;
    perform headroom.create_user_policy();
    -- The identity column of the new table begins at 1.
    perform setval(
        pg_get_serial_sequence('headroom.audit_log', 'id'),
        (select coalesce(max(id), 0) + 1 from headroom.audit_log), false
    );
end
$$;
