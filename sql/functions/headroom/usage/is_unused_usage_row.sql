-- Returns whether a usage row was never used: no message was counted or is held, no window is open, also of a model or
-- a member, nothing was granted, and the limit is the plan's. Such a row follows from the user's entitlement alone
-- (headroom.apply_entitlement). A row without a plan was written by an older client or by hand and counts as used.
--
-- All parameters are columns of the row.
create or replace function headroom.is_unused_usage_row(
    p_user_id uuid, p_billing_period text, p_count integer, p_held integer, p_released integer, p_granted integer,
    p_plan text, p_plan_limit integer, p_limit integer, p_window_ends_at timestamptz
) returns boolean
    language sql stable
    return p_count = 0 and p_released = 0 and coalesce(p_granted, 0) = 0 and p_plan is not null
        and (p_window_ends_at > headroom.now()) is not true
        and p_limit is not distinct from p_plan_limit
        and (p_held = 0 or headroom.held_messages(p_user_id, p_billing_period, p_held) = 0)
        and not headroom.has_open_part_window(p_user_id, p_billing_period);
