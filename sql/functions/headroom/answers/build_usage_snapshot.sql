-- Returns a usage snapshot. p_count: the usage row's message_count; null without a row. p_limit:
-- headroom.effective_limit. p_held: the messages held at p_at, or null. p_window: headroom.open_window.
create or replace function headroom.build_usage_snapshot(
    p_entitlement headroom.entitlement, p_count integer, p_held bigint, p_limit integer, p_at timestamptz,
    p_window headroom.usage_window
) returns headroom.usage_snapshot
    language sql immutable parallel safe
    return row(
        (p_entitlement).plan, (p_entitlement).state, (p_entitlement).denial_reason, (p_entitlement).billing_period,
        least(coalesce(p_count, 0)::bigint + coalesce((p_entitlement).spent_messages, 0), 2147483647)::integer,
        least(coalesce(p_held, 0), 2147483647)::integer, p_limit,
        (p_entitlement).started_at, (p_entitlement).resets_at, (p_entitlement).expires_at,
        (p_entitlement).previous_plan, (p_entitlement).renews, p_at, (p_entitlement).plan_revision, 0,
        (p_window).opened_at, (p_window).ends_at,
        case when (p_entitlement).window_messages is not null then coalesce((p_window).used, 0) end,
        case when (p_entitlement).window_messages is not null then coalesce((p_window).held, 0) end,
        (p_entitlement).window_messages, null, null
    )::headroom.usage_snapshot;
