-- Shows users, messages and tiers of each billing period, and of all periods that are open now.
create or replace view public.billing_period_report as
select
    periods.billing_period,
    sum(periods.users)::bigint as users,
    sum(periods.used)::bigint as messages,
    coalesce(sum(periods.users) filter (where periods.tier = 'silent'), 0)::bigint as silent,
    coalesce(sum(periods.users) filter (where periods.tier = 'gentle'), 0)::bigint as gentle,
    coalesce(sum(periods.users) filter (where periods.tier = 'prominent'), 0)::bigint as prominent,
    coalesce(sum(periods.users) filter (where periods.tier = 'blocked'), 0)::bigint as blocked
from (
    select headroom.unnumbered_label(usage.billing_period) as billing_period, 1 as users, usage.used, usage.tier
    from headroom.usage_rows as usage
    union all
    select
        headroom.unnumbered_label(superseded.billing_period) as billing_period, -1 as users, 0 as used, superseded.tier
    from headroom.superseded_usage_rows as superseded
    union all
    select 'open' as billing_period, 1 as users, usage.used, usage.tier
    from headroom.usage_rows as usage where usage.is_open
) as periods
group by periods.billing_period;
comment on view public.billing_period_report is
    'A row per billing period, and "open" for all that are open now: users with usage, their messages, and how many '
    'are in which tier. A month or week has the periods with a number, such as 2026-03.2, too, and each user once.';
