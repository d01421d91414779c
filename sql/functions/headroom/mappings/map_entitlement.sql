-- Maps a store's entitlement to plans, or replaces the mapping. It applies to products that have no mapping of their
-- own. Returns the number of events that failed because a product was not mapped; `headroom events replay --failed`
-- applies them.
create or replace function headroom.map_entitlement(
    p_source text, p_entitlement text, p_plan text, p_trial_plan text default null, p_intro_plan text default null
) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_trial_plan constant text := coalesce(p_trial_plan, 'trial');
begin
    perform headroom.check_store_name('entitlement', p_source, p_entitlement);
    if p_plan is null then
        raise exception 'p_plan must not be null' using errcode = 'null_value_not_allowed';
    elsif p_source <> 'revenuecat' then
        raise exception 'events of % name no entitlement', p_source using errcode = 'invalid_parameter_value',
            hint = 'Map the product instead, with headroom product map or headroom.map_product.';
    end if;
    perform headroom.check_plan(p_plan), headroom.check_plan(v_trial_plan), headroom.check_plan(p_intro_plan);
    insert into headroom.store_entitlements as entitlements (source, entitlement, plan, trial_plan, intro_plan)
    values (p_source, p_entitlement, p_plan, v_trial_plan, p_intro_plan)
    on conflict (source, entitlement) do update
    set plan = excluded.plan, trial_plan = excluded.trial_plan, intro_plan = excluded.intro_plan
    where (entitlements.plan, entitlements.trial_plan, entitlements.intro_plan)
        is distinct from (excluded.plan, excluded.trial_plan, excluded.intro_plan);
    return (
        select count(*) from headroom.billing_events as events
        where events.source = p_source and events.outcome = 'failed' and events.missing_prerequisite = 'product'
    );
end
$$;
