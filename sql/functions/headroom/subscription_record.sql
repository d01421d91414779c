-- Returns what the audit log records of a user's plan and of one subscription. Null if the user has neither. p_record:
-- {"anchor", "previous_plan", "subscription": as the service writes it}.
create or replace function headroom.subscription_record(p_record jsonb, p_entitlement headroom.entitlement)
    returns jsonb
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_plan constant jsonb := headroom.plan_record(
        p_entitlement, (p_record ->> 'anchor')::integer, p_record ->> 'previous_plan'
    );
begin
    if v_plan is null then
        return p_record -> 'subscription';
    end if;
    return v_plan || coalesce(p_record -> 'subscription', '{}');
end
$$;
