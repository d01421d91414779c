-- What stores sent, whose it is, and what follows from it.

-- An event as its store told it, once: nothing in a row changes after. No payload: only what the fold needs is kept.
create table headroom.store_events (
    source text not null,
    event_id text not null,
    user_id uuid references headroom.subscribers on delete cascade,
    original_transaction_id text,
    event_at timestamptz not null,
    received_at timestamptz not null,
    kind text not null,
    plan text references headroom.plans on update cascade,
    product text,
    next_plan text references headroom.plans on update cascade,
    next_product text,
    started_at timestamptz,
    expires_at timestamptz,
    grace_until timestamptz,
    anchor_day smallint,
    environment text,
    outcome text not null,
    transferred_at timestamptz,
    primary key (source, event_id),
    constraint outcome_is_known check (outcome in ('applied', 'waiting', 'outdated', 'ignored'))
);
comment on table headroom.store_events is 'Store events, each once. headroom.subscriptions is their fold.';
comment on column headroom.store_events.outcome is
    'What apply_store_event answered: applied; waiting, until another event tells the plan; outdated, by a set_plan;
    ignored, a kind that changes no subscription.';
create index store_events_user on headroom.store_events (user_id, event_at);

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

-- Each notification once, for dedup for good; what is in it is blanked when it is old or its user is forgotten.
create table headroom.store_notifications (
    source text not null,
    id text not null,
    type text not null,
    happened_at timestamptz not null,
    received_at timestamptz not null,
    environment text,
    identities text[] not null,
    effects jsonb,
    payload jsonb,
    mentions text[] not null,
    user_id uuid,
    outcome text not null,
    lacks text,
    problem text,
    effect jsonb,
    attempts integer not null,
    applied_at timestamptz,
    primary key (source, id),
    constraint outcome_is_known check (outcome in ('applied', 'waiting', 'outdated', 'ignored', 'failed', 'forgotten')),
    constraint lacks_is_known check (lacks in ('user', 'product')),
    constraint a_failure_has_a_problem check ((outcome = 'failed') = (problem is not null))
);
comment on table headroom.store_notifications is 'What stores sent, each once, with what became of it.';
comment on column headroom.store_notifications.identities is
    'Who it may be, best first: UUIDs, and SHA-256 digests of whatever else a store knows somebody by.';
comment on column headroom.store_notifications.mentions is 'What may mend it: identities, transactions, products.';
comment on column headroom.store_notifications.lacks is 'What a failed one lacks, where that may still come.';
comment on column headroom.store_notifications.effect is 'Where its user stood after it was applied.';
comment on column headroom.store_notifications.payload is
    'What is kept of the store''s own words, for a replay: ids, dates and enumerations.';
create index store_notifications_failed on headroom.store_notifications (source, received_at) where outcome = 'failed';
create index store_notifications_user on headroom.store_notifications (user_id, received_at);
create index store_notifications_mentions on headroom.store_notifications using gin (mentions);
-- Those of which more than that they came is kept, for pruning.
create index store_notifications_kept on headroom.store_notifications (received_at) where effects is not null;

-- Whose a digest is: as the newest notification says that names it beside a UUID.
create table headroom.store_identities (
    source text not null,
    identity text not null,
    user_id uuid not null,
    told_at timestamptz not null,
    told_by text not null,
    primary key (source, identity)
);
comment on table headroom.store_identities is 'Users by the digest of what a store knows them by.';
create index store_identities_user on headroom.store_identities (user_id);

-- Who a notification says the owner of a transaction is. Also without anybody, to find what waits for a transaction.
create table headroom.store_claims (
    source text not null,
    transaction text not null,
    id text not null,
    at timestamptz not null,
    identities text[] not null,
    primary key (source, transaction, id)
);
comment on table headroom.store_claims is 'Which notification names whom as the owner of which original transaction.';
create index store_claims_notification on headroom.store_claims (source, id);
create index store_claims_identities on headroom.store_claims using gin (identities);

-- All that is of one person becomes another's. Two ids of one person are told in the same way: whatever the others had is
-- the first one's from then on.
create table headroom.store_transfers (
    source text not null,
    id text not null,
    place integer not null,
    at timestamptz not null,
    from_identities text[] not null,
    to_identities text[] not null,
    primary key (source, id, place)
);
comment on table headroom.store_transfers is 'Transfers and aliases, as facts: they concern what comes later, too.';
create index store_transfers_from on headroom.store_transfers using gin (from_identities);
create index store_transfers_to on headroom.store_transfers using gin (to_identities);

-- What follows from those: the persons whose a transaction was, one after the other; the last is its owner.
create table headroom.store_owners (
    source text not null,
    transaction text not null,
    step integer not null,
    person text not null,
    since timestamptz not null,
    told_by text not null,
    is_alias boolean not null default false,
    made_at timestamptz,
    usage jsonb,
    primary key (source, transaction, step)
);
comment on table headroom.store_owners is 'Whose a transaction was and is. Follows from claims, transfers, identities.';
comment on column headroom.store_owners.person is 'A user''s UUID, or the digest of somebody who is not known yet.';
comment on column headroom.store_owners.usage is
    'Of a step from one person to the next: the messages that the one before had counted in the current periods.';
comment on column headroom.store_owners.is_alias is
    'No transaction: an alias, by which the trial of the one before is the next one''s, too.';
create index store_owners_person on headroom.store_owners (person);
create index store_owners_told_by on headroom.store_owners (source, told_by);

-- What is in a user's count that others counted, so that it is neither added twice nor passed on as the user's own.
create table headroom.store_carried_usage (
    user_id uuid not null,
    billing_period text not null,
    generation bigint not null,
    messages integer not null,
    counted integer not null,
    starts_at timestamptz not null,
    ends_at timestamptz not null,
    primary key (user_id, billing_period)
);
comment on table headroom.store_carried_usage is 'Messages that came to a user''s count with a subscription.';
comment on column headroom.store_carried_usage.starts_at is
    'When the period began as it was when they came: a new anchor day moves it and keeps its name.';
comment on column headroom.store_carried_usage.counted is
    'How many of them are in the count: none of those that came before a reset, which generation tells.';

-- One-time purchases of messages: what was bought, and where it was granted.
create table headroom.store_purchases (
    source text not null,
    transaction text not null,
    user_id uuid not null,
    happened_at timestamptz not null,
    messages bigint not null,
    granted integer,
    billing_period text,
    primary key (source, transaction)
);
comment on table headroom.store_purchases is 'Messages bought once; granted and billing_period are null after a refund.';
comment on column headroom.store_purchases.messages is
    'What it grants: what was bought, less what was used before it moved to its month.';
create index store_purchases_user on headroom.store_purchases (user_id);
comment on column headroom.store_events.transferred_at is 'When its transaction came to its user from another.';
create index store_events_transaction on headroom.store_events (original_transaction_id, event_at);

grant select, insert, update, delete on
    headroom.store_events, headroom.store_notifications, headroom.store_identities, headroom.store_claims,
    headroom.store_transfers, headroom.store_owners, headroom.store_carried_usage, headroom.store_purchases
to headroom_service;
grant select on headroom.store_products to headroom_service;
-- Operators see what stores sent and whose it is, say what products are, and have what failed tried again.
grant select on
    headroom.store_events, headroom.store_notifications, headroom.store_identities, headroom.store_claims,
    headroom.store_transfers, headroom.store_owners, headroom.store_carried_usage, headroom.store_purchases
to headroom_operator;
grant select, insert, update, delete on headroom.store_products to headroom_operator;
