-- Raises p_code if a row has a value that a constraint forbids. HR006: the row is stored, because the constraint was
-- removed. The message contains only the name of the column, because the service logs each message once. Callers first
-- detect such a row by a cheaper condition; this function finds the column.
create or replace function headroom.raise_invalid_row(p_table text, p_row jsonb, p_code text default 'HR006')
    returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_column text;
    v_rule text;
    v_is_valid boolean;
begin
    for v_column, v_rule in
        select columns.name, format(rules.rule, columns.name)
        from (values
            (
                'public.message_usage',
                '{message_count,held,released,granted,limit,plan_limit,window_count,window_held,window_limit,'
                'generation,plan_revision,entitlement_version,extra,usable_count}',
                'coalesce(%I, 0) >= 0'
            ),
            (
                'public.message_usage', '{updated_at,started_at,resets_at,expires_at,extra_expires}',
                'headroom.is_instant(%I)'
            ),
            ('headroom.message_keys', '{messages}', '%I between 1 and 1000000'),
            (
                'headroom.message_keys',
                '{used,held,limit,committed_messages,committed_used,committed_held,committed_limit,window_used,'
                'window_held,window_limit,committed_window_used,committed_window_held,committed_window_limit,'
                'generation}',
                'coalesce(%I, 0) >= 0'
            ),
            ('headroom.message_keys', '{verb}', '%I in (''c'', ''r'')'),
            ('headroom.message_keys', '{status}', '%I in (''c'', ''h'', ''r'')'),
            (
                'headroom.message_keys', '{expires_at}',
                'coalesce(%1$I, ''-infinity'') = ''-infinity'' or headroom.is_instant(%1$I)'
            ),
            (
                'headroom.usage_parts', '{generation,used,held,limit,window_used,window_held,window_limit}',
                'coalesce(%I, 0) >= 0'
            ),
            (
                'headroom.usage_parts', '{updated_at,window_opened_at,window_ends_at,holds_end_at}',
                'headroom.is_instant(%I)'
            ),
            ('headroom.usage_parts', '{kind}', '%I in (''model'', ''member'')'),
            ('headroom.subscribers', '{anchor_day}', '%I between 1 and 31'),
            ('headroom.plans', '{allowance}', 'coalesce(%I, 0) >= 0'),
            ('headroom.plans', '{trial_days}', 'cycle <> ''trial'' or coalesce(%I, 0) between 1 and 3650'),
            ('headroom.plans', '{gentle_percent,prominent_percent}', 'coalesce(%I, -1) between 0 and 100'),
            ('headroom.spent_trials', '{messages}', '%I >= 0')
        ) as rules (of_table, columns, rule)
        cross join unnest(rules.columns::text[]) as columns (name)
        where rules.of_table = p_table
        union all
        select attname, format('headroom.is_instant(%I)', attname) from pg_attribute
        where attrelid = p_table::regclass and atttypid = 'headroom.instant'::regtype
    loop
        -- This is the base type, because a value outside the domain headroom.instant could not be read.
        execute format(
            'select %s from jsonb_to_record($1) as invalid (cycle text, %I %s)', v_rule, v_column, (
                select coalesce(nullif(types.typbasetype, 0), types.oid)::regtype
                from pg_attribute as attributes
                join pg_type as types on types.oid = attributes.atttypid
                where attributes.attrelid = p_table::regclass and attributes.attname = v_column
            )
        ) into v_is_valid using p_row;
        if not v_is_valid then
            raise exception '%.% is out of range', replace(p_table, 'public.', ''), v_column
                using errcode = p_code, detail = format('The value is %s.', coalesce(p_row ->> v_column, 'null')),
                    hint = case
                        when p_code <> 'HR006' then format('Set it so that %s.', v_rule)
                        else format(
                            'select * from %s where (%s) is not true lists such rows. Correct them, then restore the '
                            'constraint.', replace(p_table, 'public.', ''), v_rule
                        )
                    end;
        end if;
    end loop;
end
$$;
