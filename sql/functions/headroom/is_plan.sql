-- Whether the numbers of a plan are in range, as the check constraints of headroom.plans have it. Inlined into what calls it.
create or replace function headroom.is_plan(p_plan headroom.plans) returns boolean
    language sql immutable parallel safe
    return coalesce((p_plan).allowance, 0) >= 0
        and ((p_plan).cycle <> 'trial' or ((p_plan).trial_days between 1 and 3650) is true)
        and ((p_plan).gentle_percent between 0 and 100) is true and ((p_plan).prominent_percent between 0 and 100) is true;
revoke all on function headroom.is_plan(headroom.plans) from public;
grant execute on function headroom.is_plan(headroom.plans) to headroom_service, headroom_operator;
