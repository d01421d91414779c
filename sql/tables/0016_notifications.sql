-- Notifications: what the product's backend is told by HTTP when a user reaches a tier
-- (docs/decisions/0045-notifications.md).
--
-- Not divided into buckets: a user has a few rows in a billing period, and only sessions to the coordinator use them.
create table headroom.notifications (
    user_id uuid not null,
    billing_period text not null,
    plan text not null,
    tier text not null,
    id uuid not null default gen_random_uuid(),
    body text not null,
    status "char" not null default 'p',
    attempts integer not null default 0,
    problem text,
    created_at headroom.instant not null,
    next_attempt_at headroom.instant not null,
    delivered_at headroom.instant,
    period_ends_at headroom.instant,
    -- Prevents a second notification of the same tier.
    primary key (user_id, billing_period, plan, tier),
    constraint tier_is_gentle_prominent_or_blocked check (tier in ('gentle', 'prominent', 'blocked')),
    constraint status_is_known check (status in ('p', 'd', 'f', 's')),
    constraint delivered_at_is_of_a_delivered_one check ((status = 'd') = (delivered_at is not null)),
    constraint attempts_are_not_negative check (attempts >= 0)
);
comment on table headroom.notifications is
    'Notifications of users who have reached a tier: once for each billing period, plan and tier.';
comment on column headroom.notifications.body is 'The body of the request, in JSON, the same in each attempt.';
comment on column headroom.notifications.status is
    'p: pending, d: delivered, f: failed; not tried again, s: skipped, because the tier came with an import';
comment on column headroom.notifications.problem is 'Why the last attempt failed.';
comment on column headroom.notifications.period_ends_at is
    'When the billing period ends, as of created_at. Null if it never does.';

create unique index notifications_id on headroom.notifications (id);
create index notifications_due on headroom.notifications (next_attempt_at) where status = 'p';
create index notifications_failed on headroom.notifications (created_at) where status = 'f';
create index notifications_period_ends_at on headroom.notifications (period_ends_at);

grant select, insert, update, delete on headroom.notifications to headroom_service;
grant select on headroom.notifications to headroom_operator;
