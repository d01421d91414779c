-- Notifications: what the product's backend is told by HTTP when a user reaches a tier of an allowance
-- (docs/decisions/0045-notifications.md).
--
-- Not divided into buckets: a user has a few rows in a billing period, and only sessions to the coordinator use them.
create table headroom.notifications (
    user_id uuid not null,
    billing_period text not null,
    plan text not null,
    allowance text not null default 'period',
    part text collate "C",
    window_opened_at headroom.instant,
    tier text not null,
    id uuid not null default gen_random_uuid() primary key,
    body text not null,
    status "char" not null default 'p',
    attempts integer not null default 0,
    problem text,
    created_at headroom.instant not null,
    next_attempt_at headroom.instant not null,
    delivered_at headroom.instant,
    period_ends_at headroom.instant,
    constraint allowance_is_known check (allowance in ('period', 'window', 'model', 'member')),
    constraint models_and_members_have_a_name check ((allowance in ('model', 'member')) = (part is not null)),
    constraint tier_is_gentle_prominent_or_blocked check (tier in ('gentle', 'prominent', 'blocked')),
    constraint status_is_known check (status in ('p', 'd', 'f', 's')),
    constraint delivered_at_is_of_a_delivered_one check ((status = 'd') = (delivered_at is not null)),
    constraint attempts_are_not_negative check (attempts >= 0)
);
comment on table headroom.notifications is
    'Notifications of users who have reached a tier of an allowance: once for each billing period or window.';
comment on column headroom.notifications.allowance is
    'What is used so far: the messages of the period, of the window, with a model, or of a member.';
comment on column headroom.notifications.part is 'The name in headroom.plan_limits of a model, the id of a member.';
comment on column headroom.notifications.window_opened_at is
    'When the window opened that has the tier. Null if it is that of the billing period.';
comment on column headroom.notifications.body is 'The body of the request, in JSON, the same in each attempt.';
comment on column headroom.notifications.status is
    'p: pending, d: delivered, f: failed; not tried again, s: skipped, because the tier came with an import';
comment on column headroom.notifications.problem is 'Why the last attempt failed.';
comment on column headroom.notifications.period_ends_at is
    'When the billing period or the window ends, as of created_at. Null if it never does.';

-- Prevents a second notification of the same tier.
create unique index notifications_once on headroom.notifications (
    user_id, plan, allowance, coalesce(part, ''), billing_period, coalesce(window_opened_at, '-infinity'), tier
);
-- This finds a member in every account, to forget it.
create index notifications_member on headroom.notifications (part) where allowance = 'member';
create index notifications_due on headroom.notifications (next_attempt_at) where status = 'p';
create index notifications_failed on headroom.notifications (created_at) where status = 'f';
create index notifications_period_ends_at on headroom.notifications (period_ends_at);

grant select, insert, update, delete on headroom.notifications to headroom_service;
grant select on headroom.notifications to headroom_operator;
