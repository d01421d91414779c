-- Writes usage rows with the users' present entitlements. updated_at stays unless the count or the held messages
-- change. The caller has locked the rows that exist. Raises serialization_failure if another session has inserted a row
-- meanwhile, and another error if a row does not take the values (headroom.raise_unwritten_rows).
--
-- p_entitlements: the entitlements of users in ascending order, each once, all in one bucket; the row is that of the
-- entitlement's period. Each of the other arrays has one element per user. p_generations: the generation of the row, or
-- of the row to insert; a row with another one was written by another session. It is null for the row that was restored
-- with the subscriber. p_counts, p_held, p_limits, p_usable_until: the columns' new values. p_released: messages to add
-- to the column. p_windows: each user's open window, null for a user without one; or null, which leaves the windows in
-- the rows as they are. So does a plan without windows.
create or replace function headroom.write_usage_rows(
    p_bucket smallint, p_entitlements headroom.entitlement[], p_generations bigint[], p_counts integer[],
    p_held integer[], p_released integer[], p_limits integer[], p_usable_until timestamptz[],
    p_windows headroom.usage_window[]
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_generations bigint[] := p_generations;
    v_windows headroom.usage_window[] := p_windows;
    v_written bigint;
    v_user uuid;
    v_period text;
begin
    -- Both are rare, and not part of the statement below, because Citus cannot plan an INSERT that reads the table and
    -- takes numbers from a sequence.
    if array_position(p_generations, null) is not null then
        v_generations := array(
            select coalesce(p_generations[derived.ordinality], (
                select restored.generation from public.message_usage as restored
                where restored.bucket = p_bucket and restored.user_id = derived.user_id
                    and restored.billing_period = derived.billing_period
            ))
            from unnest(p_entitlements) with ordinality as derived
            order by derived.ordinality
        );
    end if;
    if p_windows is null
        and exists (select from unnest(p_entitlements) as derived where derived.window_messages is not null) then
        -- These are the windows in the rows, which stay.
        v_windows := array(
            select (
                select row(
                    null, kept.window_opened_at, kept.window_ends_at, kept.window_count, kept.window_held, null
                )::headroom.usage_window
                from public.message_usage as kept
                where kept.bucket = p_bucket and kept.user_id = derived.user_id
                    and kept.billing_period = derived.billing_period
            )
            from unnest(p_entitlements) with ordinality as derived
            order by derived.ordinality
        );
    end if;
    -- It is no UPDATE with a join, which may read the whole table if it was small when it was last analyzed.
    insert into public.message_usage as usage (
        bucket, user_id, billing_period, generation, message_count, held, released, updated_at, "limit", plan_limit,
        plan, state, started_at, resets_at, expires_at, previous_plan, renews, usable_until, plan_revision,
        enforced, window_opened_at, window_ends_at, window_count, window_held, window_limit
    )
    select
        p_bucket, derived.user_id, derived.billing_period,
        v_generations[derived.ordinality], p_counts[derived.ordinality], p_held[derived.ordinality],
        p_released[derived.ordinality], v_now,
        p_limits[derived.ordinality], derived.allowance, derived.plan, derived.state, derived.started_at,
        derived.resets_at, derived.expires_at, derived.previous_plan, derived.renews,
        p_usable_until[derived.ordinality], derived.plan_revision, nullif(derived.enforced, true),
        v_windows[derived.ordinality].opened_at, v_windows[derived.ordinality].ends_at,
        v_windows[derived.ordinality].used, v_windows[derived.ordinality].held, derived.window_messages
    from unnest(p_entitlements) with ordinality as derived
    -- There are no parameters from here on: Citus cannot pass them to the machine that has the rows.
    on conflict (user_id, billing_period) do update
    set message_count = excluded.message_count, held = excluded.held,
        released = least(usage.released::bigint + excluded.released, 2147483647),
        updated_at = case
            when excluded.message_count <> usage.message_count or excluded.held <> usage.held then excluded.updated_at
            else usage.updated_at
        end,
        "limit" = excluded."limit", plan_limit = excluded.plan_limit, plan = excluded.plan, state = excluded.state,
        started_at = excluded.started_at, resets_at = excluded.resets_at, expires_at = excluded.expires_at,
        previous_plan = excluded.previous_plan, renews = excluded.renews, usable_until = excluded.usable_until,
        plan_revision = excluded.plan_revision, enforced = excluded.enforced,
        window_opened_at = case
            when excluded.window_limit is null then usage.window_opened_at else excluded.window_opened_at
        end,
        window_ends_at = case
            when excluded.window_limit is null then usage.window_ends_at else excluded.window_ends_at
        end,
        window_count = case when excluded.window_limit is null then usage.window_count else excluded.window_count end,
        window_held = case when excluded.window_limit is null then usage.window_held else excluded.window_held end,
        window_limit = excluded.window_limit,
        -- This is a new number of the sequence, so that the trigger does not write the row again.
        entitlement_version = excluded.entitlement_version
    where usage.generation = excluded.generation;
    get diagnostics v_written = row_count;
    if v_written < cardinality(p_entitlements) then
        perform headroom.raise_unwritten_rows(p_bucket, p_entitlements, p_generations);
    end if;
    if p_windows is not null then
        -- A user has one window, in one row: an open one was moved into this row, and a new one takes the place of one
        -- that the present plan has ended. One that opened while the clock was ahead stays for
        -- headroom.correct_clock_jump.
        for v_user, v_period in
            select derived.user_id, derived.billing_period
            from unnest(p_entitlements) with ordinality as derived
            where p_windows[derived.ordinality].opened_at is not null
        loop
            update public.message_usage as usage
            set window_opened_at = null, window_ends_at = null, window_count = null, window_held = null
            where usage.bucket = p_bucket and usage.user_id = v_user and usage.billing_period <> v_period
                and usage.window_ends_at > v_now and usage.window_opened_at <= v_now + interval '1 hour';
        end loop;
    end if;
end
$$;
