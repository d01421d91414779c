-- Billing events of app stores and billing systems, their customers, and their effects. The service computes what an
-- event changes (docs/decisions/0009-billing-is-reduced-in-swift.md); these tables store the results.

-- A customer is a set of identities that events have connected, such as a user and a store's customer id. A session
-- locks the customer's row before it applies an event.
create table headroom.customers (
    customer_id bigint generated always as identity primary key
);
comment on table headroom.customers is 'Customers: users and other identities that billing events connect.';

create table headroom.customer_names (
    name text primary key,
    customer_id bigint not null references headroom.customers on delete cascade
);
comment on table headroom.customer_names is 'The names by which a customer is found.';
comment on column headroom.customer_names.name is
    'user:UUID, SOURCE:sha256:DIGEST of a store''s id of a customer, or SOURCE:transaction:ORIGINAL TRANSACTION.';
create index customer_names_customer on headroom.customer_names (customer_id);

-- Events are never deleted, so that none is applied twice. Their outcomes: an ignored event concerns no subscription; a
-- waiting event takes effect with another event, for example one that names the plan; an outdated event is older than
-- the plan that an operator set; a forgotten event belonged to a user who was forgotten.
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
    missing_prerequisite text,
    unmapped_product text,
    problem text,
    resulting_entitlement jsonb,
    attempts integer not null,
    applied_at headroom.instant,
    primary key (source, id),
    constraint source_is_a_name check (source ~ '^[a-z][a-z0-9_]{0,31}$'),
    constraint outcome_is_known check (outcome in ('applied', 'waiting', 'outdated', 'ignored', 'failed', 'forgotten')),
    constraint missing_prerequisite_is_known check (missing_prerequisite in ('user', 'product', 'time')),
    constraint a_failure_has_a_problem check ((outcome = 'failed') = (problem is not null)),
    constraint attempts_are_counted check (attempts >= 0)
);
comment on table headroom.billing_events is
    'Billing events of stores and billing systems, each once, with their outcomes.';
comment on column headroom.billing_events.identities is
    'The identities that it names, most reliable first: UUIDs, and SHA-256 digests of other store ids.';
comment on column headroom.billing_events.effects is
    'The changes that it reports, such as a renewal, with the plans to which its products were mapped when it was '
    'applied. Null after its user was forgotten.';
comment on column headroom.billing_events.missing_prerequisite is
    'Why a failed event could not be applied yet. user: no user is known for it; product: its product is not mapped; '
    'time: it is dated in the future. Null if the event itself is malformed.';
comment on column headroom.billing_events.unmapped_product is 'The product, if missing_prerequisite is product.';
comment on column headroom.billing_events.resulting_entitlement is
    'The plan and access that its user had after it was applied.';
comment on column headroom.billing_events.payload is
    'Ids, dates and enumerations of the store''s payload, for a replay. Null after 400 days.';
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
    days integer,
    primary key (source, product),
    constraint source_is_a_name check (source ~ '^[a-z][a-z0-9_]{0,31}$'),
    constraint product_is_one_short_line check (product ~ '^[^[:cntrl:]]{1,255}$'),
    constraint product_is_for_something check (plan is not null or messages is not null),
    constraint messages_are_0_to_1000000 check (messages between 0 and 1000000),
    -- A pass, or another product that is bought once and is for a plan. Some stores name no end of it.
    constraint days_are_1_to_36500 check (days between 1 and 36500),
    constraint days_are_of_a_plan check (days is null or plan is not null)
);
comment on table headroom.store_products is 'The plan of each product of a store. Edit freely; later events follow.';
comment on column headroom.store_products.trial_plan is 'The plan during a trial of the product.';
comment on column headroom.store_products.intro_plan is 'The plan during an introductory offer; null is plan.';
comment on column headroom.store_products.messages is
    'Messages granted for each purchase of a one-time product; 0 grants none.';
comment on column headroom.store_products.days is
    'How long the plan of a product that is bought once lasts; null is as long as the store says, or for good.';

create table headroom.store_entitlements (
    source text not null,
    entitlement text not null,
    plan text not null references headroom.plans on update cascade on delete cascade,
    trial_plan text not null default 'trial' references headroom.plans on update cascade,
    intro_plan text references headroom.plans on update cascade,
    primary key (source, entitlement),
    constraint source_is_a_name check (source ~ '^[a-z][a-z0-9_]{0,31}$'),
    constraint entitlement_is_one_short_line check (entitlement ~ '^[^[:cntrl:]]{1,255}$')
);
comment on table headroom.store_entitlements is
    'The plan of each entitlement of a store, for products that are not in headroom.store_products.';
-- Most apps name it so. An operator who wants another plan maps it, or deletes it.
insert into headroom.store_entitlements (source, entitlement, plan) values ('revenuecat', 'premium', 'paid');

-- One-time purchases of messages, and the billing periods in which the messages were granted.
create table headroom.message_purchases (
    source text not null,
    transaction text not null,
    user_id uuid not null,
    happened_at headroom.instant not null,
    messages integer not null,
    is_refunded boolean not null,
    granted_messages integer,
    billing_period text,
    primary key (source, transaction),
    constraint messages_are_1_to_1000000 check (messages between 1 and 1000000),
    constraint granted_messages_are_not_negative check (granted_messages >= 0)
);
comment on table headroom.message_purchases is
    'One-time purchases of messages. granted_messages and billing_period are null before the grant and after a refund.';
comment on column headroom.message_purchases.messages is
    'Messages to grant: those that were bought, without those that were used in an earlier period.';
comment on column headroom.message_purchases.granted_messages is 'Messages granted in billing_period.';
comment on column headroom.message_purchases.billing_period is 'The billing period whose limit the grant raised.';
create index message_purchases_user on headroom.message_purchases (user_id);

-- A transfer of a subscription raises the receiver's counts to the giver's, once for each event, if it gives the
-- receiver access; the receiver gets the giver's open window too. Otherwise users could reset their counts by
-- transferring the subscription to a new account.
create table headroom.usage_transfers (
    source text not null,
    event_id text not null,
    giver uuid not null,
    receiver uuid not null,
    made_at headroom.instant not null,
    raised jsonb not null default '{}',
    raised_window jsonb,
    primary key (source, event_id, giver, receiver)
);
comment on table headroom.usage_transfers is
    'Transfers that may raise the receiver''s counts, once each; raised has what they added.';
comment on column headroom.usage_transfers.raised is
    'For each billing period that was raised: the messages that were added, the generation of the usage row, and the '
    'same for each of headroom.usage_parts that was raised.';
comment on column headroom.usage_transfers.raised_window is
    'If the receiver''s window was raised: when it opened, the messages that were added, and when the receiver''s own '
    'ends that was open.';
create index usage_transfers_giver on headroom.usage_transfers (giver);
create index usage_transfers_receiver on headroom.usage_transfers (receiver);

grant select, insert, update, delete on
    headroom.customers, headroom.customer_names, headroom.billing_events, headroom.message_purchases,
    headroom.usage_transfers
to headroom_service;
grant select on headroom.store_products, headroom.store_entitlements to headroom_service;
-- Operators read events and customers, and map products.
grant select on
    headroom.customers, headroom.customer_names, headroom.billing_events, headroom.message_purchases,
    headroom.usage_transfers
to headroom_operator;
grant select, insert, update, delete on headroom.store_products, headroom.store_entitlements to headroom_operator;
