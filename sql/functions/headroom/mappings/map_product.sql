-- Maps a store's product to plans, to messages, or to both, and replaces an earlier mapping. p_trial_plan defaults to
-- 'trial'. p_days: how long the plan of a product that is bought once lasts, if the store names no end; null is for
-- good. Returns the number of events that failed because this product was not mapped; `headroom events replay --failed`
-- applies them.
create or replace function headroom.map_product(
    p_source text, p_product text, p_plan text, p_trial_plan text default null, p_intro_plan text default null,
    p_messages integer default null, p_days integer default null
) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_trial_plan constant text := coalesce(p_trial_plan, 'trial');
begin
    perform headroom.check_store_name('product', p_source, p_product);
    if p_plan is null and p_messages is null then
        raise exception 'a product is for a plan, or for messages' using errcode = 'null_value_not_allowed';
    elsif p_messages not between 0 and 1000000 then
        raise exception 'p_messages must be 0 to 1000000' using errcode = 'invalid_parameter_value';
    elsif p_days not between 1 and 36500 then
        raise exception 'p_days must be 1 to 36500' using errcode = 'invalid_parameter_value';
    elsif p_days is not null and p_plan is null then
        raise exception 'p_days is for a plan' using errcode = 'invalid_parameter_value';
    end if;
    perform headroom.check_plan(p_plan), headroom.check_plan(v_trial_plan), headroom.check_plan(p_intro_plan);
    insert into headroom.store_products as products (source, product, plan, trial_plan, intro_plan, messages, days)
    values (p_source, p_product, p_plan, v_trial_plan, p_intro_plan, p_messages, p_days)
    on conflict (source, product) do update
    set plan = excluded.plan, trial_plan = excluded.trial_plan, intro_plan = excluded.intro_plan,
        messages = excluded.messages, days = excluded.days
    where (products.plan, products.trial_plan, products.intro_plan, products.messages, products.days)
        is distinct from (
            excluded.plan, excluded.trial_plan, excluded.intro_plan, excluded.messages, excluded.days
        );
    return (
        select count(*) from headroom.billing_events as events
        where events.source = p_source and events.outcome = 'failed'
            and p_product = any(string_to_array(events.unmapped_product, chr(10)))
    );
end
$$;
