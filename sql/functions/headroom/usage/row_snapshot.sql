-- Returns the usage snapshot of a usage row, from its columns alone. It is the user's present one while the row is
-- usable (headroom.is_usable); after that, p_held may include expired holds. A row without a plan, as older clients
-- write it, counts as the plan paid. PostgreSQL inlines the function.
--
-- p_at: the present time. The other parameters are columns of the row.
create or replace function headroom.row_snapshot(
    p_plan text, p_state text, p_billing_period text, p_count integer, p_held integer, p_limit integer,
    p_started_at timestamptz, p_updated_at timestamptz, p_resets_at timestamptz, p_expires_at timestamptz,
    p_previous_plan text, p_renews boolean, p_plan_revision integer, p_window_opened_at timestamptz,
    p_window_ends_at timestamptz, p_window_count integer, p_window_held integer, p_window_limit integer,
    p_extra integer, p_extra_expires timestamptz, p_at timestamptz
) returns headroom.usage_snapshot
    language sql immutable parallel safe
    return row(
        coalesce(p_plan, 'paid'), coalesce(p_state, 'active'), null, p_billing_period, p_count, p_held, p_limit,
        coalesce(p_started_at, p_updated_at), p_resets_at, p_expires_at, p_previous_plan, p_renews, p_at,
        p_plan_revision, 0,
        case when p_window_limit is not null and p_window_ends_at > p_at then p_window_opened_at end,
        case when p_window_limit is not null and p_window_ends_at > p_at then p_window_ends_at end,
        case when p_window_limit is null then null when p_window_ends_at > p_at then p_window_count else 0 end,
        case when p_window_limit is null then null when p_window_ends_at > p_at then p_window_held else 0 end,
        p_window_limit, p_extra, p_extra_expires
    )::headroom.usage_snapshot;
