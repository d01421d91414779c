-- Finds what makes an existing message_usage table unfit, as far as the catalog shows it. It is executed before the
-- tables until 0001_adopted_table.sql is applied, and only reads. 0001_adopted_table.sql checks the rows and reports
-- all findings together. This file reports them itself if the table's own code must not be executed, or if no row could
-- be written.
do $$
declare
    v_table constant oid := (
        select oid from pg_class where relnamespace = 'public'::regnamespace and relname = 'message_usage'
    );
    v_is_superuser constant boolean := (select rolsuper from pg_roles where rolname = current_user);
    -- These are the five columns that clients read, their types, and the types that are converted.
    v_names constant text[] := '{user_id,billing_period,message_count,limit,updated_at}';
    v_types constant regtype[] := '{uuid,text,integer,integer,timestamptz}';
    v_converted constant text[] := array[
        '{text,varchar,bpchar}', '{varchar,bpchar}', '{smallint,bigint,numeric}', '{smallint,bigint,numeric}',
        '{timestamp}'
    ];
    v_ours constant text[] := '{generation,released,held,bucket,plan,plan_limit,state,started_at,resets_at,expires_at,'
        'previous_plan,usable_until,plan_revision,entitlement_version,granted,renews,enforced,'
        'window_opened_at,window_ends_at,window_count,window_held,window_limit,extra,extra_expires,usable_count}';
    v_table_row pg_class;
    v_kind text;
    v_findings text[];
    v_is_fatal boolean;
begin
    perform set_config('headroom.findings', '', true);
    if to_regclass('headroom.migrations') is not null then
        if exists (select from headroom.migrations where number = 1) then
            return;
        end if;
    end if;
    select * into v_table_row from pg_class where oid = v_table;
    if not found then
        return;
    end if;
    v_kind := case v_table_row.relkind
        when 'r' then null when 'p' then 'partitioned table' when 'v' then 'view' when 'm' then 'materialized view'
        when 'f' then 'foreign table' when 'S' then 'sequence' when 'c' then 'type' else 'index'
    end;
    if v_kind is not null then
        raise exception 'public.message_usage is a %, and must be an ordinary table', v_kind
            using errcode = 'wrong_object_type', hint = format(
                'alter %s public.message_usage rename to message_usage_before%s, then migrate again.',
                replace(v_kind, 'partitioned ', ''), case
                    when v_table_row.relkind in ('p', 'v', 'm', 'f')
                        then '; create table public.message_usage as select * from public.message_usage_before'
                    else ''
                end
            );
    end if;

    -- Some findings end the check here, because nothing may be tried with the table: its triggers, defaults and
    -- constraints are executed with the rights of the role that migrates and of the service's role.
    select array_agg(finding order by position, finding), coalesce(bool_or(position < 10), false)
    into v_findings, v_is_fatal
    from (
        -- A role may trust the roles that it can act as. A superuser can act as every role, and trusts none but itself.
        select 1 as position, format(
            '%s belongs to %I, and would run with the rights of %I: run headroom migrate as %2$I, or look at triggers '
            'and defaults, and let %3$I own the table (alter table message_usage owner to %3$I) and the functions',
            owned.what, owner.rolname, current_user
        ) as finding
        from (
            select 'message_usage' as what, relowner as owner from pg_class where oid = v_table
            union all
            select format('%s, the function of a trigger of message_usage,', function.oid::regprocedure),
                function.proowner
            from pg_trigger as trigger join pg_proc as function on function.oid = trigger.tgfoid
            where trigger.tgrelid = v_table and not trigger.tgisinternal
        ) as owned
        join pg_roles as owner on owner.oid = owned.owner
        where not owner.rolsuper and owner.rolname <> current_user
            and (v_is_superuser or not pg_has_role(owner.oid, 'USAGE'))
        union all
        select 2, format(
            'the column %I is missing: %s', names.name, case
                when names.name in ('user_id', 'billing_period') then format(
                    'alter table public.message_usage rename column … to %I, the one that holds it', names.name
                )
                else format('alter table public.message_usage add column %I %s', names.name, v_types[names.position])
            end
        )
        from unnest(v_names) with ordinality as names (name, position)
        where not exists (
            select from pg_attribute where attrelid = v_table and attname = names.name and not attisdropped
        )
        union all
        select 3, format(
            'message_usage.%s is of type %s, and must be of type %s: alter table message_usage alter column %1$I type '
            '%3$s using …', attribute.attname, format_type(attribute.atttypid, attribute.atttypmod),
            v_types[names.position]
        )
        from unnest(v_names) with ordinality as names (name, position)
        join pg_attribute as attribute
            on attribute.attrelid = v_table and attribute.attname = names.name and not attribute.attisdropped
        where attribute.atttypid <> v_types[names.position]
            and attribute.atttypid <> all(v_converted[names.position]::regtype[])
        union all
        select 4, format('the rule %I changes what is written: drop rule %1$I on public.message_usage', rulename)
        from pg_rewrite where ev_class = v_table
        union all
        select 5, format(
            'message_usage inherits from %s: alter table public.message_usage no inherit %1$s', inhparent::regclass
        )
        from pg_inherits where inhrelid = v_table
        union all
        select 5, format(
            'the table %s inherits from message_usage: alter table %1$s no inherit public.message_usage',
            inhrelid::regclass
        )
        from pg_inherits where inhparent = v_table
        union all
        select 6, 'message_usage is a table of a type: alter table public.message_usage not of'
        where v_table_row.reloftype <> 0
        union all
        select 7, 'row level security hides rows from their owner, who migrates: alter table public.message_usage no '
            'force row level security'
        from pg_roles where rolname = current_user and v_table_row.relforcerowsecurity
            and not (rolsuper or rolbypassrls)
        union all
        select 10, format(
            'the restrictive policy %I concerns %s: alter policy %1$I on public.message_usage to the roles that it is '
            'for',
            polname, case when polroles = '{0}' then 'every role, also headroom_service' else 'headroom_service' end
        )
        from pg_policy
        where polrelid = v_table and not polpermissive and (
            polroles = '{0}'
            or exists (select from unnest(polroles) as role where pg_has_role('headroom_service', role, 'USAGE'))
        )
        union all
        select 11, format(
            'message_usage.%s is %s, and Headroom writes it: alter table public.message_usage alter column %1$I drop '
            '%3$s',
            attname, case attgenerated when '' then 'an identity column' else 'a generated column' end,
            case attgenerated when '' then 'identity' else 'expression' end
        )
        from pg_attribute
        where attrelid = v_table and attname = any(v_names) and (attgenerated <> '' or attidentity <> '')
        union all
        select 12, format(
            'message_usage.%s has no default and must not be null: alter table public.message_usage alter column %1$I '
            'drop not null', attname
        )
        from pg_attribute
        where attrelid = v_table and attnum > 0 and not attisdropped and attname <> all(v_names) and attnotnull
            and not atthasdef and attidentity = ''
        union all
        select 13, format(
            'message_usage.%s has the name of a column of Headroom''s: alter table public.message_usage rename column '
            '%1$I to %I',
            attname, attname || '_before'
        )
        from pg_attribute where attrelid = v_table and attname = any(v_ours) and not attisdropped
        union all
        select 13, format(
            'the trigger %I has the name of a trigger of Headroom''s: alter trigger %1$I on public.message_usage '
            'rename to %I',
            tgname, tgname || '_before'
        )
        from pg_trigger
        where tgrelid = v_table and not tgisinternal
            and tgname in ('record_manual_change', 'end_holds', 'values_are_in_range', 'advance_entitlement_version')
        union all
        select 14, format(
            '%s %s: %s', coalesce(keys.conname, keys.indexname),
            case when keys.columns @> '{user_id,billing_period}' then 'is deferrable, and must not be'
                else 'does not allow a row for each user and period' end,
            case
                when keys.conname is null then format('drop index public.%I', keys.indexname)
                else format('alter table public.message_usage drop constraint %I', keys.conname)
            end
        )
        from (
            select class.relname as indexname, con.conname, index.indimmediate, array(
                select attname from pg_attribute where attrelid = v_table
                    and attnum = any((index.indkey::smallint[])[0 : index.indnkeyatts - 1])
            )::text[] as columns
            from pg_index as index
            join pg_class as class on class.oid = index.indexrelid
            left join pg_constraint as con on con.conindid = index.indexrelid and con.conrelid = v_table
                and con.contype <> 'f'
            where index.indrelid = v_table and (index.indisunique or index.indisexclusion) and not 0 = any(index.indkey)
        ) as keys
        where keys.columns <@ v_names
            -- `on conflict` accepts no deferrable constraint.
            and (not keys.columns @> '{user_id,billing_period}' or not keys.indimmediate)
        union all
        select 15, format(
            'the foreign key %I refuses values that Headroom writes: alter table public.message_usage drop constraint '
            '%1$I',
            conname
        )
        from pg_constraint as con
        where conrelid = v_table and contype = 'f' and exists (
            select from pg_attribute
            where attrelid = v_table and attnum = any(con.conkey) and attname = any(v_names) and attname <> 'user_id'
        )
        union all
        select 15, format(
            'the foreign key %I of %s keeps FORGET from deleting rows: alter table %2$s drop constraint %1$I, or add '
            'it again with on delete cascade', conname, conrelid::regclass
        )
        from pg_constraint where confrelid = v_table and contype = 'f' and confdeltype in ('a', 'r')
    ) as findings (position, finding);
    if v_is_fatal then
        raise exception 'message_usage cannot be adopted as it is: (%)', array_to_string(v_findings, ') (')
            using errcode = 'HR009', hint = 'Nothing was changed. Mend these, then migrate again.';
    end if;
    perform set_config('headroom.findings', coalesce(array_to_string(v_findings, E'\n'), ''), true);
end
$$;
