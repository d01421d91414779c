-- Returns whether a usage row has only values that the constraints of message_usage allow; the constraints may have
-- been removed. All parameters are columns of the row. PostgreSQL inlines the function. headroom.lock_usage raises the
-- error about a row that is invalid. count_batch and count_keyed_batch have the conditions written out.
create or replace function headroom.is_valid_usage_row(
    p_count integer, p_held integer, p_released integer, p_granted integer, p_limit integer, p_plan_limit integer,
    p_updated_at timestamptz, p_started_at timestamptz, p_resets_at timestamptz, p_expires_at timestamptz,
    p_window_count integer, p_window_held integer, p_window_limit integer
) returns boolean
    language sql immutable parallel safe
    return least(
        p_count, p_held, p_released, p_granted, p_limit, p_plan_limit, p_window_count, p_window_held, p_window_limit
    ) >= 0
    and headroom.is_instant(p_updated_at) and headroom.is_instant(p_started_at)
    and headroom.is_instant(p_resets_at) and headroom.is_instant(p_expires_at);
