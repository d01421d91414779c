-- name: list_products
select products.source, products.product, products.plan, products.trial_plan, products.intro_plan, products.messages
from headroom.store_products as products
order by products.source, products.product;
