-- Plans and subscribers.
--
-- Tables of users, and the receipts, have a column "bucket" at the beginning of their primary keys
-- (docs/decisions/0026-sql-for-a-distributed-database.md).

-- Operators add plans and change them; each user's next message follows.
create table headroom.plans (
    plan text primary key,
    label text not null,
    cycle text not null,
    allowance integer,
    trial_days integer,
    gentle_percent integer not null default 80,
    prominent_percent integer not null default 95,
    time_zone text,
    enforced boolean not null default true,
    -- A window is a second, shorter allowance beside that of the period. It opens with the first message that finds
    -- none open, and ends a fixed time later. A user has at most one.
    window_messages integer,
    window_seconds integer,
    constraint plan_is_a_name check (plan ~ '^[a-z][a-z0-9_]{0,31}$'),
    -- REPORT, TOP and USAGE use "open" for all open periods.
    constraint plan_is_not_open check (plan <> 'open'),
    constraint label_is_one_short_line check (label ~ '^[^[:cntrl:]]{1,64}$'),
    constraint cycle_is_known check (cycle in ('monthly', 'weekly', 'daily', 'trial', 'lifetime')),
    constraint only_daily_and_weekly_plans_have_a_time_zone check (time_zone is null or cycle in ('weekly', 'daily')),
    constraint allowance_is_not_negative check (allowance >= 0),
    constraint a_trial_has_days_and_a_limit check (
        (cycle = 'trial') = (trial_days is not null) and (cycle <> 'trial' or allowance is not null)
    ),
    constraint trial_days_are_1_to_3650 check (trial_days between 1 and 3650),
    constraint percentages_ascend check (
        gentle_percent between 0 and 100 and prominent_percent between gentle_percent and 100
    ),
    constraint a_window_has_messages_and_seconds check ((window_messages is null) = (window_seconds is null)),
    constraint window_messages_are_1_to_1000000 check (window_messages between 1 and 1000000),
    constraint window_seconds_are_60_to_2678400 check (window_seconds between 60 and 2678400)
);
comment on table headroom.plans is 'Plans. Edit freely; each user''s next message follows.';
comment on column headroom.plans.cycle is
    'monthly: renewed on the anchor day; weekly: on Monday at 00:00; daily: at 00:00; trial: once, for '
    'trial_days days; lifetime: once';
comment on column headroom.plans.allowance is 'Messages per period; null is unlimited.';
comment on column headroom.plans.gentle_percent is 'Percent of the limit from which the tier is gentle.';
comment on column headroom.plans.prominent_percent is 'Percent of the limit from which the tier is prominent.';
comment on column headroom.plans.time_zone is
    'Where the days and weeks of a daily or weekly plan begin, such as Europe/Berlin; null is UTC.';
comment on column headroom.plans.enforced is
    'False, an unenforced plan: messages are counted and answered as usual, and never refused because of the allowance '
    '(shadow=1).';
comment on column headroom.plans.window_messages is
    'Messages that fit into a window of window_seconds, beside the allowance of the period; null is no window.';
comment on column headroom.plans.window_seconds is 'How long a window lasts, from its first message on.';
grant select on headroom.plans to headroom_service;
grant select, insert, update, delete on headroom.plans to headroom_operator;

insert into headroom.plans (plan, label, cycle, allowance, trial_days) values
    ('paid', 'Premium', 'monthly', 800, null),
    ('pro', 'Pro', 'monthly', null, null),
    ('trial', 'Trial', 'trial', 100, 3),
    ('free', 'Free', 'lifetime', 0, null);

-- Usage rows contain a copy of their plan's numbers, so that counting reads one row. The revision shows whether a copy
-- is older than the newest edit of the plans. An edit updates this row instead of one row per subscriber. The revisions
-- of the words and of the buckets stand beside it, because every batch reads this row.
create table headroom.plan_revision (
    only_row boolean primary key default true,
    revision integer not null,
    words_revision integer not null default 0,
    buckets_revision integer not null default 0,
    constraint there_is_one_row check (only_row),
    constraint revision_is_not_negative check (revision >= 0),
    constraint words_revision_is_not_negative check (words_revision >= 0),
    constraint buckets_revision_is_not_negative check (buckets_revision >= 0)
);
insert into headroom.plan_revision (revision) values (1);
grant select on headroom.plan_revision to headroom_service, headroom_operator;

-- Autovacuum never looks at tables with so few changed rows. Without statistics PostgreSQL expects hundreds of rows in
-- them, and compiles the statements of the reports, which read them often: fifteen seconds for one of milliseconds.
analyze headroom.plans, headroom.plan_revision;

-- One row per user with a plan or a trial. Its lock separates a change of plan (for update) from the slow path of
-- counting (for no key update).
create table headroom.subscribers (
    user_id uuid not null,
    bucket smallint not null default 0,
    anchor_day smallint not null default 1,
    trial_started_at headroom.instant,
    previous_plan text references headroom.plans on update cascade,
    operator_set_at headroom.instant,
    trial_ends_at headroom.instant,
    operator_previous_plan text references headroom.plans on update cascade,
    operator_anchor_day smallint not null default 1,
    store_trial_started_at headroom.instant,
    trial_used_up_at headroom.instant,
    has_balances boolean not null default false,
    constraint anchor_day_is_1_to_31 check (anchor_day between 1 and 31),
    constraint operator_anchor_day_is_1_to_31 check (operator_anchor_day between 1 and 31),
    primary key (bucket, user_id)
);
comment on column headroom.subscribers.anchor_day is
    'Day of the month on which a monthly period starts, 00:00 UTC; clamped to a short month''s last day.';
comment on column headroom.subscribers.trial_started_at is 'Set once: a trial cannot be started again.';
comment on column headroom.subscribers.operator_set_at is
    'When set_plan was last called for this user: store events from before that time are outdated.';
comment on column headroom.subscribers.trial_ends_at is
    'The end of a restored trial, if it does not follow from the start and the plan''s days.';
comment on column headroom.subscribers.operator_previous_plan is
    'previous_plan as set_plan wrote it: later store events start from it.';
comment on column headroom.subscribers.operator_anchor_day is
    'anchor_day as set_plan wrote it: later store events start from it.';
comment on column headroom.subscribers.store_trial_started_at is
    'When the user''s first trial in a store began, also if it was transferred later.';
comment on column headroom.subscribers.trial_used_up_at is
    'When the messages of the trial were used up, recorded when a trial of a store arrives after that.';
comment on column headroom.subscribers.has_balances is
    'Whether headroom.grants may have messages for the user beyond the allowances of periods.';

-- The inputs from which a state is derived by the database's clock, one row per original transaction of a store.
-- set_plan writes the row "operator", a first message the row "first message". No job changes rows when time passes:
-- the end of a subscription, trial or grace is a comparison with the clock.
create table headroom.subscriptions (
    user_id uuid not null,
    bucket smallint not null default 0,
    original_transaction_id text not null,
    plan text not null references headroom.plans on update cascade,
    started_at headroom.instant,
    expires_at headroom.instant,
    grace_until headroom.instant,
    billing_issue_at headroom.instant,
    unsubscribed_at headroom.instant,
    revoked_at headroom.instant,
    product text,
    next_plan text references headroom.plans on update cascade,
    next_product text,
    environment text,
    event_at headroom.instant,
    anchor_day smallint,
    store text,
    renews boolean,
    price text,
    currency text,
    -- How the paid time is divided into periods. Null: by the user's anchor day.
    period_started_at headroom.instant,
    period_ends_at headroom.instant,
    period_day smallint,
    constraint anchor_day_is_1_to_31 check (anchor_day between 1 and 31),
    constraint price_is_a_decimal check (price ~ '^[0-9]{1,15}([.][0-9]{1,3})?$'),
    constraint currency_is_an_iso_4217_code check (currency ~ '^[A-Z]{3}$'),
    constraint price_has_a_currency check ((price is null) = (currency is null)),
    constraint period_day_is_1_to_31 check (period_day between 1 and 31),
    constraint period_is_complete check (
        (period_started_at is null) = (period_ends_at is null) and (period_started_at is null) = (period_day is null)
    ),
    primary key (bucket, user_id, original_transaction_id),
    -- It is deferrable, because headroom.divide_users changes the bucket of a subscriber and of its subscriptions in
    -- two statements.
    foreign key (bucket, user_id) references headroom.subscribers on delete cascade deferrable
);
comment on column headroom.subscriptions.next_plan is 'Replaces plan at the next renewal.';
comment on column headroom.subscriptions.event_at is 'When the newest event that is applied to this row happened.';
comment on column headroom.subscriptions.anchor_day is
    'Day of the month of the purchase; the newest one of a user is in headroom.subscribers.';
comment on column headroom.subscriptions.store is
    'The store that sells it, such as app_store, where the events name it. RevenueCat sells through several.';
comment on column headroom.subscriptions.renews is
    'False if the store does not renew it: a promotion, or one that has ended. Null: it renews unless it is cancelled.';
comment on column headroom.subscriptions.price is 'As paid at the last renewal, in units of currency.';
comment on column headroom.subscriptions.period_started_at is
    'The start of the period from which others are counted: the one that the newest payment continues or begins.';
comment on column headroom.subscriptions.period_ends_at is
    'The end of that period. From it on, a year that was paid has one period after the other.';
comment on column headroom.subscriptions.period_day is
    'The day of the month on which those later periods begin; in a shorter month its last day.';
-- The service counts the renewals that are awaited by this index.
create index subscriptions_expires_at on headroom.subscriptions (expires_at) where expires_at is not null;
grant select, insert, update, delete on headroom.subscribers, headroom.subscriptions
to headroom_service, headroom_operator;
