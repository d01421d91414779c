-- Returns the allowances of these users of which messages are used and a tier is reached: of the open billing period,
-- of the open window, and of each model and member with a limit. Of a limit for the period and one for a window, the
-- fuller one counts. Users without access have none. p_users: of the bucket p_bucket.
create or replace function headroom.crossed_allowances(p_bucket smallint, p_users uuid[])
    returns setof headroom.crossed_allowance
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    with opened as materialized (
        select
            usage.user_id, usage.billing_period, usage.plan, usage.state, usage.used, usage.held, usage."limit",
            usage.resets_at, plans.window_messages, plans.window_seconds,
            headroom.open_window(usage.user_id, plans.window_seconds, headroom.now()) as opened_window,
            plans.gentle_percent, plans.prominent_percent, plans.enforced
        from headroom.usage_rows as usage
        join headroom.plans as plans on plans.plan = usage.plan
        where usage.bucket = p_bucket and usage.user_id = any(p_users) and not usage.has_ended and usage.is_open
            and not usage.has_no_access
    ),
    -- They are read once: the planner expects few rows, and would read them again for each user.
    parts as materialized (
        select
            parts.user_id, parts.period as billing_period, parts.plan, parts.kind, parts.name, parts.label, parts.used,
            parts.held, parts."limit", parts.window_used, parts.window_held, parts.window_limit,
            parts.window_opened_at, parts.window_seconds, parts.window_resets,
            -- The shares are compared by cross products, because a division would round.
            parts.window_limit is not null and (
                parts."limit" is null or parts.used::bigint + parts.held < parts."limit" and (
                    parts.window_used::bigint + parts.window_held >= parts.window_limit
                    or (parts.window_used::bigint + parts.window_held) * parts."limit"
                        > (parts.used::bigint + parts.held) * parts.window_limit
                )
            ) as is_of_window
        from headroom.part_usage_rows as parts
        where parts.bucket = p_bucket and parts.user_id = any(p_users) and parts.tier <> 'silent'
    ),
    allowances as (
        select
            opened.user_id, 'period' as allowance, null::text as part, null::text as label,
            null::timestamptz as window_opened_at, null::integer as window_seconds, opened.used, opened.held,
            opened."limit", opened.resets_at
        from opened
        union all
        select
            opened.user_id, 'window', null, null, (opened.opened_window).opened_at, opened.window_seconds,
            (opened.opened_window).used, (opened.opened_window).held, opened.window_messages,
            (opened.opened_window).ends_at
        from opened
        where (opened.opened_window).opened_at is not null
        union all
        select
            parts.user_id, parts.kind, parts.name, parts.label,
            case when parts.is_of_window then parts.window_opened_at end,
            case when parts.is_of_window then parts.window_seconds end,
            case when parts.is_of_window then parts.window_used else parts.used end,
            case when parts.is_of_window then parts.window_held else parts.held end,
            case when parts.is_of_window then parts.window_limit else parts."limit" end,
            case when parts.is_of_window then parts.window_resets else opened.resets_at end
        from parts
        join opened
            on opened.user_id = parts.user_id and opened.billing_period = parts.billing_period
                and opened.plan = parts.plan
    ),
    crossed as (
        select
            opened.user_id, opened.billing_period, opened.plan, opened.state, allowances.allowance, allowances.part,
            allowances.label, allowances.window_opened_at, allowances.window_seconds,
            headroom.tier_of(
                headroom.taken_percent(allowances.used::bigint + allowances.held, allowances."limit"),
                opened.gentle_percent, opened.prominent_percent, opened.enforced
            ) as tier,
            allowances.used, allowances.held, allowances."limit", allowances.resets_at
        from allowances
        join opened on opened.user_id = allowances.user_id
        where allowances.used::bigint + allowances.held > 0
    )
    select crossed.* from crossed where crossed.tier <> 'silent';
end
$$;
