-- Users, messages and tiers of each billing period, and of all periods that are open now.
create or replace view public.billing_period_report as
select
    periods.billing_period,
    count(*) as users,
    sum(periods.used)::bigint as messages,
    count(*) filter (where periods.tier = 'silent') as silent,
    count(*) filter (where periods.tier = 'gentle') as gentle,
    count(*) filter (where periods.tier = 'prominent') as prominent,
    count(*) filter (where periods.tier = 'blocked') as blocked
from (
    select usage.billing_period, usage.used, usage.tier from headroom.usage_rows as usage
    union all
    select 'open' as billing_period, usage.used, usage.tier from headroom.usage_rows as usage where usage.is_open
) as periods
group by periods.billing_period;
comment on view public.billing_period_report is
    'A row per billing period, and "open" for all that are open now: users with usage, their messages, and how many '
    'are in which tier.';
grant select on public.billing_period_report to headroom_service, headroom_dashboard, headroom_operator;
