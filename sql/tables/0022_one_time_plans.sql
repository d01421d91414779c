-- A pass, or another product that is bought once and is for a plan. Some stores name no end of it.
alter table headroom.store_products
add column days integer,
add constraint days_are_1_to_36500 check (days between 1 and 36500),
add constraint days_are_of_a_plan check (days is null or plan is not null);
comment on column headroom.store_products.days is
    'How long the plan of a product that is bought once lasts; null is as long as the store says, or for good.';
