-- What stores and billing systems sent, whose it is, and what follows from it. What an event means is decided by the
-- service (docs/decisions/0009-billing-is-reduced-in-swift.md); the tables keep what it decides.

-- Everybody whom events connect is one customer. The row is what a session locks before it applies one of their events.
create table headroom.customers (
    customer_id bigint generated always as identity primary key
);
comment on table headroom.customers is 'Customers: users, and people without a user, whom store events connect.';

create table headroom.customer_names (
    name text primary key,
    customer_id bigint not null references headroom.customers on delete cascade
);
comment on table headroom.customer_names is 'What a customer is found by.';
comment on column headroom.customer_names.name is
    'user:UUID, SOURCE:sha256:DIGEST of what a store knows a customer by, or SOURCE:transaction:ORIGINAL TRANSACTION.';
create index customer_names_customer on headroom.customer_names (customer_id);

-- Each event once, for good, so that none is ever applied twice.
create table headroom.billing_events (
    source text not null,
    id text not null,
    customer_id bigint references headroom.customers,
    type text not null,
    happened_at headroom.instant not null,
    received_at headroom.instant not null,
    environment text,
    identities text[] not null,
    effects jsonb,
    payload jsonb,
    user_id uuid,
    outcome text not null,
    missing text,
    missing_product text,
    problem text,
    effect jsonb,
    attempts integer not null,
    applied_at headroom.instant,
    primary key (source, id),
    constraint source_is_a_name check (source ~ '^[a-z][a-z0-9_]{0,31}$'),
    constraint outcome_is_known check (outcome in ('applied', 'waiting', 'outdated', 'ignored', 'failed', 'forgotten')),
    constraint missing_is_known check (missing in ('user', 'product', 'time')),
    constraint a_failure_has_a_problem check ((outcome = 'failed') = (problem is not null)),
    constraint attempts_are_counted check (attempts >= 0)
);
comment on table headroom.billing_events is 'What stores and billing systems sent, each once, with what became of it.';
comment on column headroom.billing_events.identities is
    'Whom it names, best first: UUIDs, and SHA-256 digests of whatever else a store knows somebody by.';
comment on column headroom.billing_events.effects is
    'What it does, with the plans that its products were mapped to when it was applied. Null once its user is forgotten.';
comment on column headroom.billing_events.missing is 'What a failed one missing, where that may still come.';
comment on column headroom.billing_events.missing_product is 'The product that is not mapped.';
comment on column headroom.billing_events.effect is 'What its user had after it was applied.';
comment on column headroom.billing_events.payload is
    'What is kept of the store''s own words, for a replay: ids, dates and enumerations. Null after 400 days.';
create index billing_events_customer on headroom.billing_events (customer_id);
create index billing_events_user on headroom.billing_events (user_id, received_at);
create index billing_events_failed on headroom.billing_events (source, received_at) where outcome = 'failed';
create index billing_events_payload on headroom.billing_events (received_at) where payload is not null;

create table headroom.store_products (
    source text not null,
    product text not null,
    plan text references headroom.plans on update cascade,
    trial_plan text not null default 'trial' references headroom.plans on update cascade,
    intro_plan text references headroom.plans on update cascade,
    messages integer,
    primary key (source, product),
    constraint source_is_a_name check (source ~ '^[a-z][a-z0-9_]{0,31}$'),
    constraint product_is_one_short_line check (product ~ '^[^[:cntrl:]]{1,255}$'),
    constraint product_is_for_something check (plan is not null or messages is not null),
    constraint messages_are_0_to_1000000 check (messages between 0 and 1000000)
);
comment on table headroom.store_products is 'Which plan a store''s product is. Edit freely; what comes next follows.';
comment on column headroom.store_products.trial_plan is 'The plan while a trial of the product runs.';
comment on column headroom.store_products.intro_plan is 'The plan while an introductory offer runs; null is plan.';
comment on column headroom.store_products.messages is
    'Of a product that is bought once: messages granted for each. 0: it is known, and grants nothing.';

create table headroom.store_entitlements (
    source text not null,
    entitlement text not null,
    plan text not null references headroom.plans on update cascade,
    trial_plan text not null default 'trial' references headroom.plans on update cascade,
    intro_plan text references headroom.plans on update cascade,
    primary key (source, entitlement),
    constraint source_is_a_name check (source ~ '^[a-z][a-z0-9_]{0,31}$'),
    constraint entitlement_is_one_short_line check (entitlement ~ '^[^[:cntrl:]]{1,255}$')
);
comment on table headroom.store_entitlements is
    'Which plan an entitlement of a store is, for products that are not in headroom.store_products.';

-- One-time purchases of messages: what was bought, and where it was granted.
create table headroom.message_purchases (
    source text not null,
    transaction text not null,
    user_id uuid not null,
    happened_at headroom.instant not null,
    messages integer not null,
    is_refunded boolean not null,
    granted integer,
    billing_period text,
    primary key (source, transaction),
    constraint messages_are_1_to_1000000 check (messages between 1 and 1000000),
    constraint granted_is_not_negative check (granted >= 0)
);
comment on table headroom.message_purchases is 'Messages bought once; granted and billing_period are null after a refund.';
comment on column headroom.message_purchases.granted is
    'What is granted of it: less than was bought where some was used before it moved to its month.';
create index message_purchases_user on headroom.message_purchases (user_id);

-- A subscription that goes to another user takes the giver's counts along once, or a transfer would be a free reset.
create table headroom.usage_transfers (
    source text not null,
    event_id text not null,
    giver uuid not null,
    receiver uuid not null,
    made_at headroom.instant not null,
    primary key (source, event_id, giver, receiver)
);
comment on table headroom.usage_transfers is 'Transfers whose receiver''s counts were raised to the giver''s.';
create index usage_transfers_giver on headroom.usage_transfers (giver);
create index usage_transfers_receiver on headroom.usage_transfers (receiver);

grant select, insert, update, delete on
    headroom.customers, headroom.customer_names, headroom.billing_events, headroom.message_purchases,
    headroom.usage_transfers
to headroom_service;
grant select on headroom.store_products, headroom.store_entitlements to headroom_service;
-- Operators see what stores sent and whose it is, and say what products are.
grant select on
    headroom.customers, headroom.customer_names, headroom.billing_events, headroom.message_purchases,
    headroom.usage_transfers
to headroom_operator;
grant select, insert, update, delete on headroom.store_products, headroom.store_entitlements to headroom_operator;
