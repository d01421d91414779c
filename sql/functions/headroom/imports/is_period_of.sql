-- Returns whether a plan with this name and cycle has periods of this label.
create or replace function headroom.is_period_of(p_billing_period text, p_plan text, p_cycle text) returns boolean
    language sql stable
    return case
        when headroom.is_periodic(p_cycle) then headroom.label_cycle(p_billing_period) is not distinct from p_cycle
        else p_billing_period = p_plan
    end;
