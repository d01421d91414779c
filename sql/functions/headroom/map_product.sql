-- Maps a product, or maps it anew; null for p_trial_plan is 'trial'. Returns how many events failed for the
-- lack of it: headroom events replay --failed applies them.
create or replace function headroom.map_product(
    p_source text, p_product text, p_plan text, p_trial_plan text default null, p_intro_plan text default null,
    p_messages integer default null
) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_plan text;
begin
    if p_source is null or p_product is null then
        raise exception 'p_source and p_product must not be null' using errcode = 'null_value_not_allowed';
    elsif p_source !~ '^[a-z][a-z0-9_]{0,31}$' or p_product !~ '^[^[:cntrl:]]{1,255}$' then
        raise exception 'p_source or p_product does not have the form of one'
            using errcode = 'invalid_parameter_value',
                hint = 'A source is a store''s name, such as revenuecat; a product has 1 to 255 characters.';
    elsif p_plan is null and p_messages is null then
        raise exception 'a product is for a plan, or for messages' using errcode = 'null_value_not_allowed';
    elsif p_messages not between 0 and 1000000 then
        raise exception 'p_messages must be 0 to 1000000' using errcode = 'invalid_parameter_value';
    end if;
    foreach v_plan in array array[p_plan, coalesce(p_trial_plan, 'trial'), p_intro_plan] loop
        if v_plan is not null and not exists (select from headroom.plans as plans where plans.plan = v_plan) then
            raise exception 'there is no plan %', quote_literal(v_plan)
                using errcode = 'no_data_found', hint = 'select plan from headroom.plans lists them.';
        end if;
    end loop;
    insert into headroom.store_products as products (source, product, plan, trial_plan, intro_plan, messages)
    values (p_source, p_product, p_plan, coalesce(p_trial_plan, 'trial'), p_intro_plan, p_messages)
    on conflict (source, product) do update
    set plan = excluded.plan, trial_plan = excluded.trial_plan, intro_plan = excluded.intro_plan,
        messages = excluded.messages
    where (products.plan, products.trial_plan, products.intro_plan, products.messages)
        is distinct from (excluded.plan, excluded.trial_plan, excluded.intro_plan, excluded.messages);
    return (
        select count(*) from headroom.billing_events as events
        where events.source = p_source and events.outcome = 'failed' and events.lacks_product = p_product
    );
end
$$;
revoke all on function headroom.map_product(text, text, text, text, text, integer) from public;
grant execute on function headroom.map_product(text, text, text, text, text, integer) to headroom_operator;
