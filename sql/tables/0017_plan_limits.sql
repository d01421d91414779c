-- Limits for parts of a plan's messages: for those with one model, and for those of each member of an account.

create table headroom.plan_limits (
    plan text not null references headroom.plans on update cascade on delete cascade,
    kind text not null,
    -- Names are compared byte by byte, as in the service.
    name text collate "C" not null,
    label text,
    allowance integer,
    window_messages integer,
    window_seconds integer,
    weight integer not null default 1,
    fallback text,
    primary key (plan, kind, name),
    constraint kind_is_model_or_member check (kind in ('model', 'member')),
    constraint model_is_a_name_or_a_prefix check (
        kind <> 'model' or name ~ '^[A-Za-z0-9._:/@-]{1,64}$' or name ~ '^[A-Za-z0-9._:/@-]{0,63}[*]$'
    ),
    constraint member_is_an_asterisk check (kind <> 'member' or name = '*'),
    constraint label_is_one_short_line check (label ~ '^[^[:cntrl:]]{1,64}$'),
    constraint allowance_is_not_negative check (allowance >= 0),
    constraint a_window_has_messages_and_seconds check ((window_messages is null) = (window_seconds is null)),
    constraint window_messages_are_1_to_1000000 check (window_messages between 1 and 1000000),
    constraint window_seconds_are_60_to_2678400 check (window_seconds between 60 and 2678400),
    constraint weight_is_1_to_1000 check (weight between 1 and 1000),
    constraint fallback_is_a_model check (fallback ~ '^[A-Za-z0-9._:/@-]{1,64}$'),
    constraint fallback_is_another_model check (fallback <> name),
    constraint members_have_no_weight_and_no_fallback check (kind = 'model' or weight = 1 and fallback is null)
);
comment on table headroom.plan_limits is
    'Limits for parts of a plan''s messages: those with a model, and those of a member of an account. Edit freely; '
    'each user''s next message follows.';
comment on column headroom.plan_limits.kind is
    'model: messages with model=; member: messages with member=, a count for each member.';
comment on column headroom.plan_limits.name is
    'The model, or the beginning of models'' names and *, which share one count; of several the longest counts. Of '
    'members: *.';
comment on column headroom.plan_limits.label is 'The name of the model that users read; null is the name.';
comment on column headroom.plan_limits.allowance is 'Messages per period of the plan; null counts without a limit.';
comment on column headroom.plan_limits.window_messages is
    'Messages that fit into a window of window_seconds; null is no window.';
comment on column headroom.plan_limits.window_seconds is 'How long a window lasts, from its first message on.';
comment on column headroom.plan_limits.weight is
    'How many messages of the plan''s allowance and window, and of the member''s, a message with this model takes.';
comment on column headroom.plan_limits.fallback is 'The model to offer when this one is used up.';
grant select on headroom.plan_limits to headroom_service;
grant select, insert, update, delete on headroom.plan_limits to headroom_operator;
analyze headroom.plan_limits;

-- What is used of these limits: a row for each user, billing period and limit, and for each member. Its rows have no
-- locks of their own: a session locks the user's usage row before it changes a row here.
create table headroom.usage_parts (
    user_id uuid not null,
    -- It changes when the count is reset, so that a message that is released after a reset does not lower the new one.
    generation bigint not null,
    updated_at timestamptz not null,
    window_opened_at timestamptz,
    window_ends_at timestamptz,
    holds_end_at timestamptz,
    used integer not null default 0,
    held integer not null default 0,
    "limit" integer,
    window_used integer,
    window_held integer,
    window_limit integer,
    bucket smallint not null default 0,
    billing_period text not null,
    kind text not null,
    name text collate "C" not null,
    imported text[],
    -- Ranges are checked by the trigger values_are_in_range, because PostgreSQL would parse constraints in each batch.
    primary key (bucket, user_id, billing_period, kind, name)
) with (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.2
);
-- This finds a member in every account, to forget it.
create index usage_parts_member on headroom.usage_parts (name) where kind = 'member';
comment on table headroom.usage_parts is
    'Messages counted per user, billing period and limit of headroom.plan_limits. usage_by_model and usage_by_member '
    'show them.';
comment on column headroom.usage_parts.name is 'The name in headroom.plan_limits; of members their ids.';
comment on column headroom.usage_parts.holds_end_at is
    'When the first hold in held or window_held ends; null without holds. Then both are computed again.';
comment on column headroom.usage_parts."limit" is 'The limit when messages were last counted; null is none.';
comment on column headroom.usage_parts.imported is
    'The models whose counts headroom import has added here, or the member; null is none.';
comment on column headroom.usage_parts.window_opened_at is
    'When the window opened that messages count in. Null without one. It may have ended.';
grant select, insert, update, delete on headroom.usage_parts to headroom_service;
grant select, update, delete on headroom.usage_parts to headroom_operator;
