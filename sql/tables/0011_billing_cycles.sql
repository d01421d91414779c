-- Plans whose periods are the days or the weeks of a time zone.
alter table headroom.plans
    add column time_zone text,
    drop constraint cycle_is_known,
    add constraint cycle_is_known check (cycle in ('monthly', 'weekly', 'daily', 'trial', 'lifetime')),
    add constraint only_daily_and_weekly_plans_have_a_time_zone check (
        time_zone is null or cycle in ('weekly', 'daily')
    );
comment on column headroom.plans.cycle is
    'monthly: renewed on the anchor day; weekly: on Monday at 00:00; daily: at 00:00; trial: once, for '
    'trial_days days; lifetime: once';
comment on column headroom.plans.time_zone is
    'Where the days and weeks of a daily or weekly plan begin, such as Europe/Berlin; null is UTC.';
