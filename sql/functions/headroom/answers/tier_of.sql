-- Returns the tier by exact integer arithmetic, as the service computes it. p_percent: headroom.taken_percent of the
-- fullest allowance. p_is_enforced: whether a limit that is used up blocks the user; null counts as true.
create or replace function headroom.tier_of(
    p_percent bigint, p_gentle_percent integer, p_prominent_percent integer, p_is_enforced boolean
) returns text
    language sql immutable parallel safe
    return case
        when p_percent >= 100 and p_is_enforced is not false then 'blocked'
        when p_percent >= coalesce(p_prominent_percent, 95) then 'prominent'
        when p_percent >= coalesce(p_gentle_percent, 80) then 'gentle'
        else 'silent'
    end;
