-- Returns the tier of a model or a member: that of the fuller of its limits. The numbers of the window are null if none
-- is open. The last three parameters: headroom.tier_of.
create or replace function headroom.part_tier(
    p_used integer, p_held integer, p_limit integer, p_window_used integer, p_window_held integer,
    p_window_limit integer, p_gentle_percent integer, p_prominent_percent integer, p_is_enforced boolean
) returns text
    language sql immutable parallel safe
    return headroom.tier_of(
        greatest(
            headroom.taken_percent(p_used::bigint + p_held, p_limit),
            headroom.taken_percent(coalesce(p_window_used::bigint + p_window_held, 0), p_window_limit)
        ), p_gentle_percent, p_prominent_percent, p_is_enforced
    );
