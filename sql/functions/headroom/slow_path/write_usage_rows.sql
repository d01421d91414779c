-- Writes usage rows with the users' present entitlements, so that the next messages take the fast path. The caller has
-- locked the rows that exist (headroom.lock_and_read_users). Raises serialization_failure if another session has
-- inserted a row meanwhile, and HR011 if a row does not take the values.
--
-- p_users is ascending without duplicates. Each of the other arrays has one element per user. p_generations: that of
-- the row; a row with another one was written by another session. Null for the row that was restored with the
-- subscriber. p_counts, p_held: the columns' new values. p_released: messages to add to the column. The others are
-- columns.
create or replace function headroom.write_usage_rows(
    p_bucket smallint, p_users uuid[], p_periods text[], p_generations bigint[], p_counts integer[], p_held integer[],
    p_released integer[], p_limits integer[], p_allowances integer[], p_plans text[], p_states text[],
    p_started_at timestamptz[], p_resets_at timestamptz[], p_expires_at timestamptz[], p_previous_plans text[],
    p_renews boolean[], p_usable_until timestamptz[], p_plan_revisions integer[]
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_written bigint;
begin
    -- Not an UPDATE with a join, which may read the whole table if it was small when it was last analyzed.
    insert into public.message_usage as usage (
        bucket, user_id, billing_period, generation, message_count, held, released, updated_at, "limit", plan_limit,
        plan, state, started_at, resets_at, expires_at, previous_plan, renews, usable_until, plan_revision
    )
    select
        p_bucket, changed.user_id, changed.billing_period,
        coalesce(changed.generation, (
            select restored.generation from public.message_usage as restored
            where restored.bucket = p_bucket and restored.user_id = changed.user_id
                and restored.billing_period = changed.billing_period
        )),
        changed.message_count, changed.held, changed.released, v_now, changed."limit", changed.allowance, changed.plan,
        changed.state, changed.started_at, changed.resets_at, changed.expires_at, changed.previous_plan,
        changed.renews, changed.usable_until, changed.plan_revision
    from unnest(
        p_users, p_periods, p_generations, p_counts, p_held, p_released, p_limits, p_allowances, p_plans, p_states,
        p_started_at, p_resets_at, p_expires_at, p_previous_plans, p_renews, p_usable_until, p_plan_revisions
    ) as changed (
        user_id, billing_period, generation, message_count, held, released, "limit", allowance, plan, state, started_at,
        resets_at, expires_at, previous_plan, renews, usable_until, plan_revision
    )
    on conflict (user_id, billing_period) do update
    set message_count = excluded.message_count, held = excluded.held,
        released = least(usage.released::bigint + excluded.released, 2147483647),
        updated_at = case
            when excluded.message_count <> usage.message_count or excluded.held <> usage.held then v_now
            else usage.updated_at
        end,
        "limit" = excluded."limit", plan_limit = excluded.plan_limit, plan = excluded.plan, state = excluded.state,
        started_at = excluded.started_at, resets_at = excluded.resets_at, expires_at = excluded.expires_at,
        previous_plan = excluded.previous_plan, renews = excluded.renews, usable_until = excluded.usable_until,
        plan_revision = excluded.plan_revision,
        -- A new number of the sequence, so that the trigger does not write the row again.
        entitlement_version = excluded.entitlement_version
    where usage.generation = excluded.generation;
    get diagnostics v_written = row_count;
    if v_written < cardinality(p_users) then
        perform headroom.raise_unwritten_rows(p_bucket, p_users, p_periods, p_generations);
    end if;
end
$$;
