-- A user's standing from the terms, and from the usage row's count and limit, which are null where there is no row. "held" in
-- the row is exact until usable_until, which no hold outlives; after it, holds have to be looked up.
create or replace function headroom.build_usage_snapshot(
    p_entitlement headroom.entitlement, p_count integer, p_held bigint, p_limit integer, p_at timestamptz
) returns headroom.usage_snapshot
    language sql immutable parallel safe
    return row(
        (p_entitlement).plan, (p_entitlement).state, (p_entitlement).denial_reason, (p_entitlement).billing_period,
        least(coalesce(p_count, 0)::bigint + coalesce((p_entitlement).spent_messages, 0), 2147483647)::integer,
        least(coalesce(p_held, 0), 2147483647)::integer, p_limit,
        (p_entitlement).started_at, (p_entitlement).resets_at, (p_entitlement).expires_at, (p_entitlement).previous_plan,
        p_at, (p_entitlement).plan_revision, 'ok', 0, false
    )::headroom.usage_snapshot;
