-- How the paid time of a store's subscription is divided into periods. Null: by the user's anchor day.
alter table headroom.subscriptions
add column period_started_at headroom.instant,
add column period_ends_at headroom.instant,
add column period_day smallint,
add constraint period_day_is_1_to_31 check (period_day between 1 and 31),
add constraint period_is_complete check (
    (period_started_at is null) = (period_ends_at is null) and (period_started_at is null) = (period_day is null)
);
comment on column headroom.subscriptions.period_started_at is
    'The start of the period from which others are counted: the one that the newest payment continues or begins.';
comment on column headroom.subscriptions.period_ends_at is
    'The end of that period. From it on, a year that was paid has one period after the other.';
comment on column headroom.subscriptions.period_day is
    'The day of the month on which those later periods begin; in a shorter month its last day.';
comment on column headroom.subscriptions.renews is
    'False if the store does not renew it: a promotion, or one that has ended. Null: it renews unless it is cancelled.';

-- The service counts the renewals that are awaited by this index.
create index subscriptions_expires_at on headroom.subscriptions (expires_at) where expires_at is not null;
