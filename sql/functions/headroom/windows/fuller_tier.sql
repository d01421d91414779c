-- Returns the tier of the fuller of period and window. p_taken, p_window_taken: messages counted or held. A null
-- p_limit is unlimited; a null p_window_limit is no window. Other parameters: headroom.tier_of.
create or replace function headroom.fuller_tier(
    p_taken bigint, p_limit bigint, p_window_taken bigint, p_window_limit bigint, p_gentle_percent integer,
    p_prominent_percent integer, p_is_enforced boolean
) returns text
    language sql immutable parallel safe
    return case
        when headroom.is_window_fuller(p_taken, p_limit, p_window_taken, p_window_limit) then headroom.tier_of(
            p_window_taken, p_window_limit, p_gentle_percent, p_prominent_percent, p_is_enforced
        )
        else headroom.tier_of(p_taken, p_limit, p_gentle_percent, p_prominent_percent, p_is_enforced)
    end;
