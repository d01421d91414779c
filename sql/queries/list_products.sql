-- Lists the mappings of products and entitlements. An entitlement has no product.
select
    products.source, products.product, products.plan, products.trial_plan, products.intro_plan, products.messages,
    products.days, null as entitlement
from headroom.store_products as products
union all
select
    entitlements.source, null as product, entitlements.plan, entitlements.trial_plan, entitlements.intro_plan,
    null as messages, null as days, entitlements.entitlement
from headroom.store_entitlements as entitlements
order by source, product nulls last, entitlement;
