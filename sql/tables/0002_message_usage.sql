-- public.message_usage: messages counted per user and billing period.
--
-- The table may already exist (0001_adopted_table.sql), because client apps read it before Headroom wrote it. Its five
-- columns keep their names and meaning. Headroom adds its own columns.

-- A valid instant. public.message_usage has a check constraint instead, because PostgreSQL would rewrite an existing
-- table for a column of this type.
create domain headroom.instant as timestamptz constraint instants_are_in_the_years_2000_to_9999 check (
    value >= '2000-01-01T00:00:00Z' and value < '10000-01-01T00:00:00Z'
);

do $$
begin
    -- An adopted table stays with its owner.
    if to_regclass('public.message_usage') is null then
        create table public.message_usage (
            user_id uuid not null,
            billing_period text not null,
            message_count integer not null default 0,
            "limit" integer,
            updated_at timestamptz not null default now(),
            primary key (user_id, billing_period)
        );
        alter table public.message_usage owner to headroom_owner;
    end if;
end
$$;

-- An existing table may have another primary key, a limit that cannot be null (null is unlimited), and columns that can
-- be null.
alter table public.message_usage alter column "limit" drop not null;
do $$
begin
    if exists (
        select from pg_catalog.pg_class where oid = 'public.message_usage'::regclass and relpersistence = 'u'
    ) then
        -- A crash would empty an unlogged table.
        alter table public.message_usage set logged;
        raise warning 'message_usage was an unlogged table and is logged now';
    end if;
end
$$;
update public.message_usage set message_count = coalesce(message_count, 0), updated_at = coalesce(updated_at, now())
where message_count is null or updated_at is null;
alter table public.message_usage
    alter column user_id set not null,
    alter column billing_period set not null,
    alter column message_count set default 0,
    alter column message_count set not null,
    alter column updated_at set default now(),
    alter column updated_at set not null;
do $$
begin
    if exists (
        select from pg_catalog.pg_index as i
        where i.indrelid = 'public.message_usage'::regclass and i.indisunique and i.indpred is null
            and i.indimmediate and i.indisvalid and i.indnkeyatts = 2
            and (select array_agg(a.attname::text order by a.attname) from pg_catalog.pg_attribute as a
                 where a.attrelid = i.indrelid and a.attnum = any(i.indkey)) = '{billing_period,user_id}'
    ) then
        return;
    end if;
    create unique index message_usage_user_id_billing_period on public.message_usage (user_id, billing_period);
end
$$;

-- The generation of a row changes when its count is reset, so that a message that is released after a reset does not
-- lower the new count.
create sequence headroom.generations;
-- The version of the columns that belong to the entitlement. A lane sends the version that it has cached, and the
-- columns are returned only if the row has another one.
create sequence headroom.entitlement_versions;
grant usage on headroom.generations, headroom.entitlement_versions to headroom_service, headroom_operator;

alter table public.message_usage
    add column generation bigint not null default 0,
    add column released integer not null default 0,
    add column held integer not null default 0,
    add column bucket smallint not null default 0,
    add column plan text,
    add column plan_limit integer,
    add column state text,
    add column started_at timestamptz,
    add column resets_at timestamptz,
    add column expires_at timestamptz,
    add column previous_plan text,
    add column usable_until timestamptz not null default '-infinity',
    add column plan_revision integer not null default 0,
    add column entitlement_version bigint,
    add column granted integer,
    add column renews boolean,
    -- From here on columns can be null, so that rows of plans that do not use them are not wider.
    add column enforced boolean,
    add column window_opened_at timestamptz,
    add column window_ends_at timestamptz,
    add column window_count integer,
    add column window_held integer,
    add column window_limit integer,
    add column extra integer,
    add column extra_expires timestamptz,
    add column usable_count integer;

-- Set after the columns were added, because a default that calls a function would rewrite an existing table. Existing
-- rows share generation 0 and have no entitlement_version until they change.
alter table public.message_usage
    alter column generation set default nextval('headroom.generations'),
    alter column entitlement_version set default nextval('headroom.entitlement_versions');

comment on column public.message_usage."limit" is
    'Messages allowed in this period; null is unlimited. A plain UPDATE of it holds until the plan itself changes.';
comment on column public.message_usage.released is
    'Messages that were counted in this period and later released or reset.';
comment on column public.message_usage.held is 'Messages that are reserved and not committed yet; they count as used.';
comment on column public.message_usage.bucket is
    'The part of a distributed database that contains the user (docs/decisions/0026); 0 on one machine.';
comment on column public.message_usage.plan_limit is 'The plan''s allowance from which "limit" was last derived.';
comment on column public.message_usage.usable_until is
    'Until then the row is usable as it is: the earliest of period end, expiry, end of grace and end of trial. After '
    'that, the next message derives plan, state and period again and rewrites the row.';
-- Nullable, because a default of 0 would make each row wider.
comment on column public.message_usage.granted is
    'Messages granted in this period beyond the plan''s allowance; "limit" includes them. Null is none.';
comment on column public.message_usage.renews is
    'Whether a store renews the subscription at expires_at. Null if it does not come from a store.';
comment on column public.message_usage.enforced is
    'False if messages beyond "limit" are counted too, because the plan is unenforced. Null is true.';
comment on column public.message_usage.window_opened_at is
    'When the window opened that the user''s messages count in. Null without one. It may have ended.';
comment on column public.message_usage.window_ends_at is 'When that window ends; the next message then opens another.';
comment on column public.message_usage.window_count is 'Messages counted in that window.';
comment on column public.message_usage.window_held is
    'Messages reserved in that window and not committed yet; they count as used.';
comment on column public.message_usage.window_limit is
    'Messages allowed in a window, a copy of the plan''s. Null if the plan has none: an open window is then kept, and '
    'nothing counts in it.';

comment on column public.message_usage.extra is
    'Messages that "limit" includes from the user''s balances (headroom.attach_balances). Null is none. What is '
    'counted beyond "limit" - extra was taken from them since.';
comment on column public.message_usage.extra_expires is
    'When the balance ends from which messages are taken first; null is never.';
comment on column public.message_usage.usable_count is
    'Up to this count messages are counted in the row as it is; the next one takes from another balance. Null is '
    '"limit".';

-- Counting changes message_count and updated_at, which are not indexed: with free space on the page, each update is
-- heap-only, and the next access prunes the old version. Frequent vacuums keep the free space near.
alter table public.message_usage set (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.2
);
