-- Adopts an existing message_usage table: converts columns without loss, checks the rows, and writes rows as Headroom
-- does. All findings are reported together with those of check_adopted_table.sql; then nothing has changed.

-- Writes a row as Headroom does, and rolls it back. Returns null, or the error: 'check' or 'reference' for such a
-- constraint of the table, else 'error'; the name of the constraint; SQLSTATE and message.
create function headroom.try_row(p_user_id uuid, p_period text, p_count integer, p_limit integer) returns text[]
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_row record;
    v_constraint text;
    v_message text;
begin
    insert into public.message_usage (user_id, billing_period, message_count, "limit", updated_at)
    values (p_user_id, p_period, 0, p_limit, now());
    update public.message_usage as usage set message_count = usage.message_count + p_count, updated_at = now()
    where usage.user_id = p_user_id and usage.billing_period = p_period;
    select usage.message_count as used, usage."limit" into v_row from public.message_usage as usage
    where usage.user_id = p_user_id and usage.billing_period = p_period;
    if not found or (v_row.used, v_row."limit") is distinct from (p_count, p_limit) then
        raise exception 'the row is not there, or has other numbers' using errcode = 'HR009';
    end if;
    set constraints all immediate;
    delete from public.message_usage as usage where usage.user_id = p_user_id and usage.billing_period = p_period;
    if not found then
        raise exception 'the row is not deleted' using errcode = 'HR009';
    end if;
    raise exception using errcode = 'HR010';
exception
    when sqlstate 'HR010' then
        return null;
    when others then
        get stacked diagnostics v_constraint = constraint_name, v_message = message_text;
        return array[coalesce((
            select case contype when 'c' then 'check' when 'f' then 'reference' end from pg_constraint
            where conrelid = 'public.message_usage'::regclass and conname = v_constraint
        ), 'error'), v_constraint, sqlstate, v_message];
end
$$;

do $$
declare
    v_table constant oid := (
        select oid from pg_class where relnamespace = 'public'::regnamespace and relname = 'message_usage'
    );
    v_zone constant text := (select reset_val from pg_settings where name = 'TimeZone');
    v_findings text[] := string_to_array(coalesce(current_setting('headroom.findings', true), ''), E'\n');
    v_can_write_rows boolean := true;
    v_change record;
    v_rows bigint;
    v_message text;
    v_detail text;
    v_user uuid;
    v_result text[];
    v_other text[];
    v_trigger name;
begin
    if v_table is null then
        return;
    end if;
    -- Conversions without loss
    -- ------------------------------------------------------------------------------------------------
    for v_change in
        select
            attribute.attname as name, format_type(attribute.atttypid, attribute.atttypmod) as before, rules.wanted,
            rules.condition, format(
                'alter table public.message_usage alter column %I type %s using %s', attribute.attname, rules.wanted,
                rules.value
            ) as statement
        from (values
            ('user_id', '{text,varchar,bpchar}', 'uuid', 'rtrim(user_id)::uuid',
             'user_id ~* ''^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12} *$'''),
            ('billing_period', '{varchar,bpchar}', 'text', 'billing_period::text', 'true'),
            ('message_count', '{smallint,bigint,numeric}', 'integer', 'message_count::integer',
             'message_count between 0 and 2147483647 and message_count % 1 = 0'),
            ('limit', '{smallint,bigint,numeric}', 'integer', '"limit"::integer',
             '"limit" between 0 and 2147483647 and "limit" % 1 = 0'),
            -- `default now()` has written it in the default time zone.
            ('updated_at', '{timestamp}', 'timestamptz', format('updated_at at time zone %L', v_zone), 'true')
        ) as rules (name, types, wanted, value, condition)
        join pg_attribute as attribute
            on attribute.attrelid = v_table and attribute.attname = rules.name and not attribute.attisdropped
        where attribute.atttypid = any(rules.types::regtype[])
    loop
        execute format('select count(*) from public.message_usage where not (%s)', v_change.condition) into v_rows;
        if v_rows > 0 then
            v_can_write_rows := false;
            v_findings := v_findings || format(
                'message_usage.%s is of type %s, and no %s in %s of its rows: correct them, select * from '
                'message_usage where not (%s) lists them', v_change.name, v_change.before, v_change.wanted, v_rows,
                v_change.condition
            );
            continue;
        end if;
        begin
            execute v_change.statement;
            raise warning 'message_usage.% was of type % and is of type % now',
                v_change.name, v_change.before, v_change.wanted;
        exception
            when others then
                -- A view, policy, trigger or foreign key depends on the column. With 0A000 the detail names it, else it
                -- contains values.
                get stacked diagnostics v_message = message_text, v_detail = pg_exception_detail;
                v_can_write_rows := false;
                v_findings := v_findings || format(
                    'message_usage.%s is of type %s, and must be of type %s, but %s%s: drop what depends on it, %s, '
                    'and make it again', v_change.name, v_change.before, v_change.wanted, v_message,
                    case sqlstate when '0A000' then ' (' || v_detail || ')' end, v_change.statement
                );
        end;
    end loop;

    -- Rows: the check constraints of 0002_message_usage.sql, whose errors would not say how to find the rows
    -- -------------------
    for v_change in
        select * from (values
            ('user_id', 'is null', 'user_id is not null', 'delete from message_usage'),
            ('billing_period', 'is null', 'billing_period is not null', 'delete from message_usage'),
            ('message_count', 'is negative', 'message_count >= 0', 'update message_usage set message_count = 0'),
            ('limit', 'is negative', '"limit" >= 0', 'update message_usage set "limit" = 0'),
            ('updated_at', 'is infinite or outside the years 2000 to 9999',
             'updated_at >= ''2000-01-01T00:00:00Z'' and updated_at < ''10000-01-01T00:00:00Z''',
             'update message_usage set updated_at = now()')
        ) as rules (name, problem, condition, correction)
    loop
        execute format('select count(*) from public.message_usage where not (%s)', v_change.condition) into v_rows;
        if v_rows > 0 then
            v_findings := v_findings || format(
                'message_usage.%s %s in %s of its rows: select * from message_usage where not (%s) lists them, %s '
                'where not (%4$s) corrects them', v_change.name, v_change.problem, v_rows, v_change.condition,
                v_change.correction
            );
        end if;
    end loop;
    select count(*) into v_rows from (
        select from public.message_usage group by user_id, billing_period having count(*) > 1
    ) as repeated;
    if v_rows > 0 then
        v_findings := v_findings || format(
            'message_usage has several rows for the same user and period, %s times: merge them, select user_id, '
            'billing_period from message_usage group by 1, 2 having count(*) > 1 lists them', v_rows
        );
    end if;

    -- Rows as Headroom writes them; constraints that are dropped and triggers that are disabled here are restored at
    -- the end ----
    begin
        alter table public.message_usage alter column "limit" drop not null;
        for v_change in
            select periods.period, numbers.used, numbers."limit"
            from unnest(array[to_char(now() at time zone 'UTC', 'YYYY-MM'), 'trial', 'free']) as periods (period)
            cross join (values (1, 800), (0, 0), (5, null), (7, 3), (2147483647, 2147483647)) as numbers (used, "limit")
            where v_can_write_rows
        loop
            -- An existing user if there is one, because a trigger may require it.
            select usage.user_id into v_user from public.message_usage as usage
            where v_findings = '{}' and usage.user_id is not null and not exists (
                select from public.message_usage as other
                where other.user_id = usage.user_id and other.billing_period = v_change.period
            )
            limit 1;
            v_user := coalesce(v_user, gen_random_uuid());
            loop
                v_result := headroom.try_row(v_user, v_change.period, v_change.used, v_change."limit");
                exit when v_result is null;
                if v_result[1] <> 'error' then
                    execute format('alter table public.message_usage drop constraint %I', v_result[2]);
                    -- While the service runs, a foreign key only refuses users that it does not find.
                    continue when v_result[1] = 'reference';
                    v_findings := v_findings || format(
                        'the check constraint %I refuses a row that Headroom writes, with the billing_period %s, the '
                        'message_count %s and the limit %s: alter table public.message_usage drop constraint %1$I',
                        v_result[2], v_change.period, v_change.used, coalesce(v_change."limit"::text, 'null')
                    );
                    continue;
                end if;
                v_other := v_result;
                for v_trigger in
                    select tgname from pg_trigger where tgrelid = v_table and not tgisinternal
                        and tgenabled <> 'D' order by 1
                loop
                    execute format('alter table public.message_usage disable trigger %I', v_trigger);
                    v_other := headroom.try_row(v_user, v_change.period, v_change.used, v_change."limit");
                    exit when v_other is distinct from v_result;
                    execute format('alter table public.message_usage enable trigger %I', v_trigger);
                end loop;
                v_findings := v_findings || case
                    when v_other is distinct from v_result then format(
                        'the trigger %I refuses or changes a row that Headroom writes (%s): change its function, or '
                        'alter table public.message_usage disable trigger %1$I', v_trigger, v_result[4]
                    )
                    else format('a row that Headroom writes is refused: SQLSTATE %s, %s', v_result[3], v_result[4])
                end;
                exit when v_other is not distinct from v_result;
            end loop;
            exit when v_result is not null;
        end loop;
        raise exception using errcode = 'HR010';
    exception
        when sqlstate 'HR010' then
            null;
    end;
    if v_findings <> '{}' then
        raise exception 'message_usage cannot be adopted as it is: (%)', array_to_string(v_findings, ') (')
            using errcode = 'HR009', hint = 'Nothing was changed. Mend these, then migrate again.';
    end if;
end
$$;
drop function headroom.try_row(uuid, text, integer, integer);
