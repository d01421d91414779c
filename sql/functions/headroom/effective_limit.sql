-- The limit in force: what the row says (an operator's UPDATE, say) while the plan's own allowance is what it was when
-- the row took it, else the plan's allowance and what was granted in this period. All but p_allowance are of the usage row.
create or replace function headroom.effective_limit(
    p_plan text, p_plan_limit integer, p_limit integer, p_granted integer, p_allowance integer
) returns integer
    language sql immutable parallel safe
    return case
        when p_plan is not null and p_plan_limit is not distinct from p_allowance then p_limit
        when p_allowance is null then null
        else least(p_allowance::bigint + coalesce(p_granted, 0), 2147483647)::integer
    end;
