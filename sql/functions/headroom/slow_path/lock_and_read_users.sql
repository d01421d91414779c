-- Locks users, and returns what decides their requests: what each user may send, and what was counted and is held in
-- the open period and in the open window. One row per user, in the order of p_users. Locks the subscribers in ascending
-- order, then the usage rows. It may create subscribers (headroom.lock_for_messages), and corrects rows that are dated
-- ahead (headroom.correct_clock_jumps).
--
-- p_users is ascending without duplicates. p_may_create: for each user, whether a request may create rows, as CONSUME
-- and RESERVE do. p_unknown_users_policy: trial, free or deny.
create or replace function headroom.lock_and_read_users(
    p_bucket smallint, p_users uuid[], p_may_create boolean[], p_unknown_users_policy text
) returns setof headroom.locked_user
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_subscribers uuid[];
    -- These say for each user whether the usage row is locked and read. It is false for a user without a subscriber who
    -- may get one: a grant may insert the row meanwhile, and writing then fails.
    v_has_lock boolean[];
    v_entitlements headroom.entitlement[];
    -- These are the rows to lock.
    v_row_users uuid[];
    v_row_periods text[];
    v_ahead uuid[];
begin
    v_subscribers := headroom.lock_for_messages(p_bucket, p_users, p_may_create);
    v_has_lock := array(
        select not request.may_create
            or v_subscribers[width_bucket(request.user_id, v_subscribers)] is not distinct from request.user_id
        from unnest(p_users, p_may_create) as request (user_id, may_create)
    );
    -- This is repeated once if rows were corrected.
    for v_attempt in 1 .. 2 loop
        v_entitlements := array(
            select derived from headroom.entitlements(p_bucket, p_users, v_now, p_unknown_users_policy) as derived
        );
        v_row_users := array(
            select derived.user_id from unnest(v_entitlements) as derived
            where v_has_lock[width_bucket(derived.user_id, p_users)]
        );
        v_row_periods := array(
            select derived.billing_period from unnest(v_entitlements) as derived
            where v_has_lock[width_bucket(derived.user_id, p_users)]
        );
        if exists (
            select from unnest(v_entitlements) as derived
            where derived.window_seconds is not null or derived.has_balances
        ) then
            -- This includes the row of an earlier period or plan that contains an open window, or one that opened while
            -- the clock was ahead. The window stays there while the subscriber is locked. headroom.open_window explains
            -- the months. It also includes the rows that headroom.detach_balances changes.
            select array_agg(rows.user_id), array_agg(rows.billing_period) into v_row_users, v_row_periods
            from (
                select one.user_id, one.billing_period
                from unnest(v_row_users, v_row_periods) as one (user_id, billing_period)
                union
                select derived.user_id, other.billing_period
                from unnest(v_entitlements) as derived
                cross join lateral (
                    select usage.billing_period from public.message_usage as usage
                    where usage.bucket = p_bucket and usage.user_id = derived.user_id and usage.window_ends_at > v_now
                        and usage.billing_period >= to_char(v_now at time zone 'UTC' - interval '3 months', 'YYYY-MM')
                    offset 0
                ) as other
                where derived.window_seconds is not null and v_has_lock[width_bucket(derived.user_id, p_users)]
                union
                select derived.user_id, other.billing_period
                from unnest(v_entitlements) as derived
                cross join lateral (
                    select usage.billing_period from public.message_usage as usage
                    where usage.bucket = p_bucket and usage.user_id = derived.user_id and (
                        usage.extra is not null or usage.billing_period = any(array(
                            select holds.billing_period
                            from headroom.expired_balance_holds(derived.user_id, v_now) as holds
                        ))
                    )
                    offset 0
                ) as other
                where derived.has_balances
                order by user_id, billing_period
            ) as rows;
        end if;
        v_ahead := headroom.lock_usage_rows(p_bucket, v_row_users, v_row_periods, v_now);
        exit when v_attempt = 2 or not headroom.correct_clock_jumps(v_entitlements, v_ahead, v_now);
    end loop;

    perform headroom.detach_balances(derived.user_id, v_now)
    from unnest(v_entitlements) as derived
    where derived.has_balances;

    return query
    select
        headroom.add_balances(headroom.build_usage_snapshot(
            derived, usage.message_count, holds.held, plain."limit", v_now, opened."window"
        ), owned.balances) as snapshot,
        derived as entitlement, coalesce(holds.held, 0) as held_by_keys,
        least(holds.ends_at, (opened."window").holds_end_at) as holds_end_at,
        v_subscribers[width_bucket(derived.user_id, v_subscribers)] is not distinct from derived.user_id
            as has_subscriber,
        usage.user_id is not null as has_usage_row,
        case
            when usage.user_id is not null then usage.generation
            -- It is null if the insertion of the subscriber restores a usage row (headroom.restore_spent_trial).
            when derived.spent_messages is null then headroom.next_generation()
        end as generation,
        coalesce(
            derived.denial_reason is null and (
                derived.has_balances or usage.plan_revision <> derived.plan_revision
                or usage.usable_until is distinct from case
                    when derived.has_subscription
                        then least(derived.usable_until, holds.ends_at, (opened."window").holds_end_at)
                    else '-infinity'
                end
            ) and usage.user_id is not null, false
        ) as is_outdated,
        (opened."window").billing_period as window_period, plain."limit", owned.balances
    from unnest(v_entitlements) as derived
    left join lateral (
        select one.* from public.message_usage as one
        where one.bucket = p_bucket and one.user_id = derived.user_id
            and one.billing_period = derived.billing_period
            and v_has_lock[width_bucket(derived.user_id, p_users)]
        limit 1
    ) as usage on true
    left join lateral (
        select sum(keys.messages) as held, min(keys.expires_at) as ends_at
        from headroom.message_keys as keys
        where usage.held > 0 and keys.bucket = p_bucket and keys.user_id = derived.user_id
            and keys.status = 'h' and keys.billing_period = derived.billing_period and keys.expires_at > v_now
    ) as holds on true
    -- With an offset, these functions are called once per row.
    cross join lateral (
        select headroom.effective_limit(
            usage.plan, usage.plan_limit, usage."limit", usage.granted, derived.allowance
        ) as "limit"
        offset 0
    ) as plain
    cross join lateral (
        select case
            when derived.has_balances then headroom.live_balances(derived.user_id, v_now)
        end as balances
        offset 0
    ) as owned
    cross join lateral (
        select case
            when derived.window_seconds is not null
                then headroom.open_window(derived.user_id, derived.window_seconds, v_now)
        end as "window"
        offset 0
    ) as opened;
end
$$;
