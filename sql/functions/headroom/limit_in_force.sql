-- The limit in force: what the row says (an operator's UPDATE, say) while the plan's own allowance is what it was when
-- the row took it, else the plan's allowance and what was granted in this period.
create or replace function headroom.limit_in_force(p_row public.message_usage, p_allowance integer) returns integer
    language sql immutable parallel safe
    return case
        when (p_row).plan is not null and (p_row).plan_limit is not distinct from p_allowance then (p_row)."limit"
        when p_allowance is null then null
        else least(p_allowance::bigint + coalesce((p_row).granted, 0), 2147483647)::integer
    end;
revoke all on function headroom.limit_in_force(public.message_usage, integer) from public;
grant execute on function headroom.limit_in_force(public.message_usage, integer) to headroom_service;
