-- Maps an entitlement of a store, or maps it anew: products that are not mapped themselves are served by it. Returns how
-- many events failed for the lack of a product's mapping: headroom events replay --failed tries them again.
create or replace function headroom.map_entitlement(
    p_source text, p_entitlement text, p_plan text, p_trial_plan text default null, p_intro_plan text default null
) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_plan text;
begin
    if p_source is null or p_entitlement is null or p_plan is null then
        raise exception 'p_source, p_entitlement and p_plan must not be null' using errcode = 'null_value_not_allowed';
    elsif p_source !~ '^[a-z][a-z0-9_]{0,31}$' or p_entitlement !~ '^[^[:cntrl:]]{1,255}$' then
        raise exception 'p_source or p_entitlement does not have the form of one'
            using errcode = 'invalid_parameter_value',
                hint = 'A source is a store''s name, such as revenuecat; an entitlement has 1 to 255 characters.';
    end if;
    foreach v_plan in array array[p_plan, coalesce(p_trial_plan, 'trial'), p_intro_plan] loop
        if v_plan is not null and not exists (select from headroom.plans as plans where plans.plan = v_plan) then
            raise exception 'there is no plan %', quote_literal(v_plan)
                using errcode = 'no_data_found', hint = 'select plan from headroom.plans lists them.';
        end if;
    end loop;
    insert into headroom.store_entitlements as entitlements (source, entitlement, plan, trial_plan, intro_plan)
    values (p_source, p_entitlement, p_plan, coalesce(p_trial_plan, 'trial'), p_intro_plan)
    on conflict (source, entitlement) do update
    set plan = excluded.plan, trial_plan = excluded.trial_plan, intro_plan = excluded.intro_plan
    where (entitlements.plan, entitlements.trial_plan, entitlements.intro_plan)
        is distinct from (excluded.plan, excluded.trial_plan, excluded.intro_plan);
    return (
        select count(*) from headroom.billing_events as events
        where events.source = p_source and events.outcome = 'failed' and events.lacks = 'product'
    );
end
$$;
revoke all on function headroom.map_entitlement(text, text, text, text, text) from public;
grant execute on function headroom.map_entitlement(text, text, text, text, text) to headroom_operator;
