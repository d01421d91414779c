-- Writes usage rows of p_entitlements, and counts the messages of their users in them. Returns the rows in which
-- messages were counted. Leaves out a user whose messages do not fit, or whose requests have to be decided one by one
-- (headroom.derive_and_count). p_users, p_messages: the messages of each user. p_periods: only in these periods.
create or replace function headroom.count_derived_rows(
    p_bucket smallint, p_entitlements headroom.entitlement[], p_users uuid[], p_messages bigint[], p_periods text[],
    p_at timestamptz
) returns table (user_id uuid, billing_period text, message_count integer)
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    -- It is no UPDATE with a join, which may read the whole table if it was small when it was last analyzed.
    return query
    insert into public.message_usage as usage (
        bucket, user_id, billing_period, message_count, updated_at, "limit", plan_limit, plan, state, started_at,
        resets_at, expires_at, previous_plan, renews, usable_until, plan_revision, enforced
    )
    select
        p_bucket, derived.user_id, derived.billing_period, p_messages[width_bucket(derived.user_id, p_users)], p_at,
        derived.allowance, derived.allowance, derived.plan, derived.state, derived.started_at, derived.resets_at,
        derived.expires_at, derived.previous_plan, derived.renews, derived.usable_until, derived.plan_revision,
        nullif(derived.enforced, true)
    from unnest(p_entitlements) as derived
    where derived.has_subscription and derived.denial_reason is null and derived.spent_messages is null
        and derived.window_messages is null and not derived.has_balances and derived.billing_period = any(p_periods)
        and p_messages[width_bucket(derived.user_id, p_users)]
            <= coalesce(case when derived.enforced then derived.allowance end, 2147483647)
    -- There are no parameters from here on: Citus cannot pass them to the machine that has the rows.
    on conflict (user_id, billing_period) do update
    set message_count = usage.message_count + excluded.message_count, updated_at = excluded.updated_at,
        "limit" = headroom.effective_limit(
            usage.plan, usage.plan_limit, usage."limit", usage.granted, excluded.plan_limit
        ),
        plan_limit = excluded.plan_limit, plan = excluded.plan, state = excluded.state,
        started_at = excluded.started_at, resets_at = excluded.resets_at, expires_at = excluded.expires_at,
        previous_plan = excluded.previous_plan, renews = excluded.renews, usable_until = excluded.usable_until,
        plan_revision = excluded.plan_revision, enforced = excluded.enforced, window_limit = null,
        -- This is a new number of the sequence, so that the trigger does not write the row again.
        entitlement_version = excluded.entitlement_version
    where usage.bucket = excluded.bucket and usage.held = 0
        and (usage.window_ends_at is null or usage.window_ends_at <= excluded.updated_at)
        -- PostgreSQL cannot subtract from infinity, and Citus sends no sum of a time and an interval.
        and least(greatest(usage.updated_at, '2000-01-01T00:00:00Z'), '10000-01-01T00:00:00Z') - excluded.updated_at
            <= interval '1 hour'
        and excluded.message_count::bigint + usage.message_count <= coalesce(
            case when excluded.enforced is not false then headroom.effective_limit(
                usage.plan, usage.plan_limit, usage."limit", usage.granted, excluded.plan_limit
            ) end,
            2147483647
        )
        and headroom.is_valid_usage_row(
            usage.message_count, usage.held, usage.released, usage.granted, usage."limit", usage.plan_limit,
            usage.updated_at, usage.started_at, usage.resets_at, usage.expires_at,
            usage.window_count, usage.window_held, usage.window_limit
        )
    returning usage.user_id, usage.billing_period, usage.message_count;
end
$$;
