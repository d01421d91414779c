-- Users, messages and tiers of each billing period, and of all that are open now, whatever their label.
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
    select monthly_usage.billing_period, monthly_usage.used, monthly_usage.tier from public.monthly_usage
    union all
    select 'open', monthly_usage.used, monthly_usage.tier from public.monthly_usage where monthly_usage.is_open
) as periods
group by periods.billing_period;
comment on view public.billing_period_report is
    'A row per billing period, and "open" for all that are open now: users with usage, their messages, and how many are in '
    'which tier by their usage.';
grant select on public.billing_period_report to headroom_service, headroom_dashboard, headroom_operator;
