-- Returns the limit that applies to a usage row. While the plan's allowance is the one with which the row was written,
-- it is the row's own limit, which an operator may have changed. Otherwise it is the new allowance plus the messages
-- granted in this period. All parameters but p_allowance are columns of the row.
create or replace function headroom.effective_limit(
    p_plan text, p_plan_limit integer, p_limit integer, p_granted integer, p_allowance integer
) returns integer
    language sql immutable parallel safe
    return case
        when p_plan is not null and p_plan_limit is not distinct from p_allowance then p_limit
        when p_allowance is null then null
        else least(p_allowance::bigint + coalesce(p_granted, 0), 2147483647)::integer
    end;
