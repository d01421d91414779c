-- Returns the messages that a plan gives in 30 days, by which plans are compared: of several subscriptions the one with
-- the most applies, and a transfer raises the counts of a receiver whose own plans give less. Null is unlimited, and so
-- is an unenforced limit. For a plan that never resets, it is the allowance.
create or replace function headroom.comparable_allowance(p_cycle text, p_allowance integer, p_is_enforced boolean)
    returns bigint
    language sql immutable parallel safe
    return case
        when not p_is_enforced then null
        when p_cycle = 'daily' then p_allowance::bigint * 30
        when p_cycle = 'weekly' then p_allowance::bigint * 30 / 7
        else p_allowance
    end;
