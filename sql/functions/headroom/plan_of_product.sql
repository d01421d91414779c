-- The plan that a product is in a period; null where the effect names none. HR004 where it is not mapped.
create or replace function headroom.plan_of_product(
    p_source text, p_product text, p_period text, p_is_needed boolean
) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_plan text;
begin
    select
        case p_period
            when 'trial' then products.trial_plan
            when 'intro' then coalesce(products.intro_plan, products.plan)
            else products.plan
        end
    into v_plan
    from headroom.store_products as products
    where products.source = p_source and products.product = p_product and products.plan is not null;
    if v_plan is null and p_product is not null and p_is_needed then
        raise exception 'product % of % is mapped to no plan', quote_literal(p_product), p_source
            using errcode = 'HR004',
                hint = 'headroom product map SOURCE PRODUCT --plan PLAN, then headroom events replay --failed.';
    end if;
    return v_plan;
end
$$;
revoke all on function headroom.plan_of_product(text, text, text, boolean) from public;
grant execute on function headroom.plan_of_product(text, text, text, boolean) to headroom_service;
