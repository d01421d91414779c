-- name: list_products
-- Products, and entitlements: those have a name in entitlement and none in product.
select mapped.source, mapped.product, mapped.plan, mapped.trial_plan, mapped.intro_plan, mapped.messages, mapped.entitlement
from (
    select
        products.source, products.product, products.plan, products.trial_plan, products.intro_plan, products.messages,
        null::text as entitlement
    from headroom.store_products as products
    union all
    select
        entitlements.source, null, entitlements.plan, entitlements.trial_plan, entitlements.intro_plan, null,
        entitlements.entitlement
    from headroom.store_entitlements as entitlements
) as mapped
order by mapped.source, mapped.product nulls last, mapped.entitlement;
