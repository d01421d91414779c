-- Maps a store's product to plans, to messages, or to both, and replaces an earlier mapping. p_trial_plan defaults to
-- 'trial'. Returns the number of events that failed because this product was not mapped; `headroom events replay
-- --failed` applies them.
create or replace function headroom.map_product(
    p_source text, p_product text, p_plan text, p_trial_plan text default null, p_intro_plan text default null,
    p_messages integer default null
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
    end if;
    perform headroom.check_plan(p_plan), headroom.check_plan(v_trial_plan), headroom.check_plan(p_intro_plan);
    insert into headroom.store_products as products (source, product, plan, trial_plan, intro_plan, messages)
    values (p_source, p_product, p_plan, v_trial_plan, p_intro_plan, p_messages)
    on conflict (source, product) do update
    set plan = excluded.plan, trial_plan = excluded.trial_plan, intro_plan = excluded.intro_plan,
        messages = excluded.messages
    where (products.plan, products.trial_plan, products.intro_plan, products.messages)
        is distinct from (excluded.plan, excluded.trial_plan, excluded.intro_plan, excluded.messages);
    return (
        select count(*) from headroom.billing_events as events
        where events.source = p_source and events.outcome = 'failed' and events.unmapped_product = p_product
    );
end
$$;
grant execute on function headroom.map_product(text, text, text, text, text, integer) to headroom_operator;
