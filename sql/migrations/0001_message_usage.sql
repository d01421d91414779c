-- The table that everybody reads, and what Headroom keeps beside it.
--
-- public.message_usage may exist already: client apps have been reading it for longer than Headroom has been writing
-- it. Its five columns keep their names and meaning; ours stand beside them.

create schema if not exists headroom;

-- The one clock. Everything asks this function and nothing else, so that a test can move time in the database. It is
-- inlined into every statement that calls it, so it costs what now() costs.
create function headroom.now() returns timestamptz
    language sql stable parallel safe
    return pg_catalog.now();

-- Plans ---------------------------------------------------------------------------------------------------------------

-- An operator adds plans and changes numbers here; the next message follows.
create table headroom.plans (
    plan text primary key,
    label text not null,
    cycle text not null,
    allowance integer,
    trial_days integer,
    gentle_percent integer not null default 80,
    prominent_percent integer not null default 95,
    constraint plan_is_a_name check (plan ~ '^[a-z][a-z0-9_]{0,31}$'),
    constraint label_is_one_short_line check (label ~ '^[^[:cntrl:]]{1,64}$'),
    constraint cycle_is_known check (cycle in ('monthly', 'trial', 'lifetime')),
    constraint allowance_is_not_negative check (allowance >= 0),
    constraint a_trial_has_days_and_a_limit check (
        (cycle = 'trial') = (trial_days is not null) and (cycle <> 'trial' or allowance is not null)
    ),
    constraint trial_days_are_1_to_3650 check (trial_days between 1 and 3650),
    constraint percentages_ascend check (
        gentle_percent between 0 and 100 and prominent_percent between gentle_percent and 100
    )
);
comment on table headroom.plans is 'What a subscriber may send. Edit freely; the next message of each user follows.';
comment on column headroom.plans.cycle is
    'monthly: comes back on the anchor day; trial: once, for trial_days days; lifetime: once';
comment on column headroom.plans.allowance is 'Messages per period; null is unlimited.';
comment on column headroom.plans.gentle_percent is 'Percent of the limit from which the tier is gentle.';
comment on column headroom.plans.prominent_percent is 'Percent of the limit from which the tier is prominent.';

insert into headroom.plans (plan, label, cycle, allowance, trial_days) values
    ('paid', 'Premium', 'monthly', 800, null),
    ('pro', 'Pro', 'monthly', null, null),
    ('trial', 'Trial', 'trial', 100, 3),
    ('free', 'Free', 'lifetime', 0, null);

-- Usage rows carry a copy of what their plan says, so that counting touches one row. This number tells a copy made
-- before an edit from one made after it: an edit of a plan costs one update here, not one per subscriber.
create table headroom.plan_revision (
    only_row boolean primary key default true,
    revision integer not null,
    constraint there_is_one_row check (only_row)
);
insert into headroom.plan_revision (revision) values (1);

create function headroom.plans_changed() returns trigger
    language plpgsql set search_path = pg_catalog
as $$
begin
    update headroom.plan_revision set revision = revision + 1;
    return null;
end
$$;
create trigger plans_changed after insert or update or delete or truncate on headroom.plans
    for each statement execute function headroom.plans_changed();

-- Subscribers ---------------------------------------------------------------------------------------------------------

-- One row per user that Headroom was told about, or that started a trial. It is also the lock that keeps a change of
-- plan and the careful path of counting apart: the first takes it for update, the second for share.
create table headroom.subscribers (
    user_id uuid primary key,
    anchor_day smallint not null default 1,
    trial_started_at timestamptz,
    previous_plan text references headroom.plans,
    constraint anchor_day_is_1_to_31 check (anchor_day between 1 and 31)
);
comment on column headroom.subscribers.anchor_day is
    'Day of the month on which a monthly period starts, 00:00 UTC; clamped to a short month''s last day.';
comment on column headroom.subscribers.trial_started_at is 'Set once: a trial cannot be started again.';

-- The inputs from which a state is derived at the database's time, one row per original transaction of a store;
-- "operator" is the one that set_plan writes, "trial" the one that a first message starts. No job changes a row when
-- time passes: expiry, the end of a trial and the end of grace are comparisons with the clock.
create table headroom.subscriptions (
    user_id uuid not null references headroom.subscribers on delete cascade,
    original_transaction_id text not null,
    plan text not null references headroom.plans on update cascade,
    started_at timestamptz,
    expires_at timestamptz,
    grace_until timestamptz,
    billing_issue_at timestamptz,
    unsubscribed_at timestamptz,
    revoked_at timestamptz,
    primary key (user_id, original_transaction_id)
);

-- Usage ---------------------------------------------------------------------------------------------------------------

create table if not exists public.message_usage (
    user_id uuid not null,
    billing_period text not null,
    message_count integer not null default 0,
    "limit" integer,
    updated_at timestamptz not null default now(),
    primary key (user_id, billing_period)
);

-- An existing table may have another primary key, a limit that cannot be null (null is unlimited here), and columns that
-- can be null where ours cannot.
alter table public.message_usage alter column "limit" drop not null;
update public.message_usage set message_count = coalesce(message_count, 0), updated_at = coalesce(updated_at, now())
where message_count is null or updated_at is null;
alter table public.message_usage
    alter column message_count set default 0,
    alter column message_count set not null,
    alter column updated_at set default now(),
    alter column updated_at set not null;
do $$
begin
    if exists (
        select from pg_catalog.pg_index as i
        where i.indrelid = 'public.message_usage'::regclass and i.indisunique and i.indpred is null
            and i.indnkeyatts = 2
            and (select array_agg(a.attname::text order by a.attname) from pg_catalog.pg_attribute as a
                 where a.attrelid = i.indrelid and a.attnum = any (i.indkey)) = '{billing_period,user_id}'
    ) then
        return;
    end if;
    if exists (select from public.message_usage group by user_id, billing_period having count(*) > 1) then
        raise exception 'message_usage has several rows for the same user and period; merge them, then migrate again. '
            'select user_id, billing_period from message_usage group by 1, 2 having count(*) > 1 lists them';
    end if;
    create unique index message_usage_user_id_billing_period on public.message_usage (user_id, billing_period);
end
$$;

-- Names an incarnation of a row: new when the row is new and when its count was reset, so that a message that is given
-- back after a reset is not taken off a count that it was not in.
create sequence headroom.generations;

alter table public.message_usage
    add column generation bigint not null default 0,
    add column released integer not null default 0,
    add column held integer not null default 0,
    add column plan text,
    add column plan_limit integer,
    add column state text,
    add column started_at timestamptz,
    add column resets_at timestamptz,
    add column expires_at timestamptz,
    add column previous_plan text,
    add column usable_until timestamptz not null default '-infinity',
    add column plan_revision integer not null default 0,
    add constraint counts_are_not_negative check (message_count >= 0 and held >= 0);

-- Not with the column itself, which would rewrite an existing table; rows that are there already share generation 0.
alter table public.message_usage alter column generation set default nextval('headroom.generations');

comment on column public.message_usage.generation is 'New with the row and with each reset of message_count.';
comment on column public.message_usage.released is 'Messages that were counted in this period and given back.';
comment on column public.message_usage.message_count is 'Messages counted in this period.';
comment on column public.message_usage."limit" is
    'Messages allowed in this period; null is unlimited. A plain UPDATE of it holds until the plan itself changes.';
comment on column public.message_usage.held is 'Messages reserved and not yet committed; they count as used.';
comment on column public.message_usage.plan_limit is 'The plan''s allowance when "limit" was last taken from it.';
comment on column public.message_usage.usable_until is
    'Until then this row may be counted in as it stands: the earliest of period end, expiry, end of grace and end of
    trial. In the past, the next message resolves plan, state and period anew and writes the row again.';

-- Counting changes message_count and updated_at, neither of which is indexed: with room left on the page each update is
-- heap-only, touches no index, and its predecessor is pruned by the next visitor. Vacuum has little to do and does it
-- early, so that the free space it finds is near.
alter table public.message_usage set (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.2
);

-- A count that falls without a release is a reset, also by a plain UPDATE. The service's statements raise counts, or
-- raise "released" with what they take off, so the condition spares them.
create function headroom.count_was_reset() returns trigger
    language plpgsql set search_path = pg_catalog
as $$
begin
    update public.message_usage as usage set generation = nextval('headroom.generations')
    where usage.user_id = new.user_id and usage.billing_period = new.billing_period;
    return null;
end
$$;
-- After the row, because a trigger before it would lock the row first, with a log record of its own for each message.
create trigger count_was_reset after update of message_count on public.message_usage
    for each row when (new.message_count < old.message_count and new.released = old.released)
    execute function headroom.count_was_reset();

-- Keys and holds ------------------------------------------------------------------------------------------------------

-- A caller's name for one message, remembered in the transaction that counts or holds it, with what was answered.
create table headroom.message_keys (
    user_id uuid not null,
    created_at timestamptz not null,
    -- Which row of message_usage it concerns.
    generation bigint not null,
    messages integer not null,
    used integer not null,
    held integer not null,
    "limit" integer,
    -- Of a hold that was committed: what that was answered.
    committed_used integer,
    committed_held integer,
    committed_limit integer,
    expires_at timestamptz,
    verb "char" not null,
    status "char" not null,
    billing_period text not null,
    key text not null,
    constraint verb_is_consume_or_reserve check (verb in ('c', 'r')),
    constraint status_is_counted_held_or_released check (status in ('c', 'h', 'r')),
    primary key (user_id, key)
);
comment on column headroom.message_keys.verb is 'c: CONSUME, r: RESERVE';
comment on column headroom.message_keys.status is
    'c: counted, h: held until expires_at, r: released; a hold whose time has passed stays h and holds nothing';

-- A user's holds, without walking through all of the user's keys.
create index message_keys_held on headroom.message_keys (user_id) where status = 'h';
-- Rows come in the order of created_at, so a block range index finds the old ones and costs next to nothing to keep.
create index message_keys_created_at on headroom.message_keys using brin (created_at) with (pages_per_range = 32);

-- A row that an operator deletes takes what it held with it: a hold must not come back in a new row that does not know of
-- it.
create function headroom.end_holds_of_row() returns trigger
    language plpgsql set search_path = pg_catalog
as $$
begin
    update headroom.message_keys as keys set expires_at = '-infinity'
    where keys.user_id = old.user_id and keys.status = 'h' and keys.billing_period = old.billing_period;
    return null;
end
$$;
create trigger end_holds_of_row after delete on public.message_usage
    for each row when (old.held > 0)
    execute function headroom.end_holds_of_row();

-- Receipts ------------------------------------------------------------------------------------------------------------

-- One row per database connection ("lane") of a service process. Each batch moves its lane's number by one in the same
-- transaction that counts, and leaves its answers here. After a broken connection the lane sends the same number
-- again: either it moves the receipt now, or it reads what the lost transaction had answered (docs/architecture.md).
create table headroom.lane_receipts (
    lane uuid primary key,
    number bigint not null,
    counted bigint[],
    standings text,
    moved_at timestamptz not null
) with (
    fillfactor = 50, toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000
);
alter table headroom.lane_receipts alter column counted set storage main;
comment on column headroom.lane_receipts.counted is
    'Answers of a counting batch: for each request counted, its place in the batch * 2^32 + message_count after it.';
comment on column headroom.lane_receipts.standings is 'Answers of a careful batch: its array of headroom.standing.';

-- The sentences that people read, written by `headroom migrate` from the service's own words.
create table headroom.words (
    name text primary key,
    template text not null
);
