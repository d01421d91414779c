-- Windows: a second, shorter allowance beside that of the period. A window opens with the first message that finds none
-- open, and ends a fixed time later. A user has at most one.
alter table headroom.plans
    add column window_messages integer,
    add column window_seconds integer,
    add constraint a_window_has_messages_and_seconds check ((window_messages is null) = (window_seconds is null)),
    add constraint window_messages_are_1_to_1000000 check (window_messages between 1 and 1000000),
    add constraint window_seconds_are_60_to_2678400 check (window_seconds between 60 and 2678400);
comment on column headroom.plans.window_messages is
    'Messages that fit into a window of window_seconds, beside the allowance of the period; null is no window.';
comment on column headroom.plans.window_seconds is 'How long a window lasts, from its first message on.';

-- Nullable, so that rows of plans without a window are not wider.
alter table public.message_usage
    add column window_opened_at timestamptz,
    add column window_ends_at timestamptz,
    add column window_count integer,
    add column window_held integer,
    add column window_limit integer,
    -- PostgreSQL reads it for each batch and evaluates it for each message: the longer, the slower. The instants are
    -- checked when they are read.
    add constraint window_numbers_are_not_negative check (least(window_count, window_held, window_limit) >= 0);
comment on column public.message_usage.window_opened_at is
    'When the window opened that the user''s messages count in. Null without one. It may have ended.';
comment on column public.message_usage.window_ends_at is 'When that window ends; the next message then opens another.';
comment on column public.message_usage.window_count is 'Messages counted in that window.';
comment on column public.message_usage.window_held is
    'Messages reserved in that window and not committed yet; they count as used.';
comment on column public.message_usage.window_limit is
    'Messages allowed in a window, a copy of the plan''s. Null if the plan has none: an open window is then kept, and '
    'nothing counts in it.';

-- window_opened_at: of the window in which the messages were counted or held. Null without one.
alter table headroom.message_keys
    add column window_opened_at headroom.instant,
    add column window_used integer,
    add column window_held integer,
    add column window_limit integer,
    add column committed_window_used integer,
    add column committed_window_held integer,
    add column committed_window_limit integer,
    drop constraint counts_are_not_negative,
    add constraint counts_are_not_negative check (
        least(
            used, held, "limit", committed_used, committed_held, committed_limit, window_used, window_held,
            window_limit, committed_window_used, committed_window_held, committed_window_limit
        ) >= 0
        and generation >= 0
    );

-- The receiver of a transferred subscription gets the giver's open window too.
alter table headroom.usage_transfers add column raised_window jsonb;
comment on column headroom.usage_transfers.raised_window is
    'If the receiver''s window was raised: when it opened, the messages that were added, and when the receiver''s own '
    'ends that was open.';

-- A user's open window.
create type headroom.usage_window as (
    -- Of the usage row that contains the window. It may be that of an earlier period or plan.
    billing_period text,
    opened_at timestamptz,
    ends_at timestamptz,
    used integer,
    held integer,
    -- When the first hold of the window ends; null without holds.
    holds_end_at timestamptz
);

alter type headroom.entitlement add attribute window_messages integer, add attribute window_seconds integer;
-- window_limit is null if the plan has no window; the two instants are null if no window is open.
alter type headroom.usage_snapshot
    add attribute window_opened_at timestamptz, add attribute window_ends_at timestamptz,
    add attribute window_used integer, add attribute window_held integer, add attribute window_limit integer;
alter type headroom.count_batch_row
    add attribute window_opened_at timestamptz, add attribute window_ends_at timestamptz,
    add attribute window_used integer, add attribute window_held integer, add attribute window_limit integer;
-- Of the usage row that contains the open window; null without one.
alter type headroom.locked_user add attribute window_period text;
alter type headroom.counted_key
    add attribute window_opened_at timestamptz, add attribute window_used integer, add attribute window_held integer,
    add attribute window_limit integer;
alter type headroom.answer
    add attribute window_limit integer, add attribute window_used integer, add attribute window_remaining integer,
    add attribute window_resets timestamptz;

-- Their results have more columns now.
drop function if exists headroom.judged_subscriptions(smallint, uuid[], timestamptz, text);
drop function if exists headroom.dated_subscriptions(smallint, uuid[], timestamptz, text);
