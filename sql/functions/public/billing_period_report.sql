-- Users, messages and tiers of each billing period.
create or replace view public.billing_period_report as
select
    monthly_usage.billing_period,
    count(*) as users,
    sum(monthly_usage.used)::bigint as messages,
    count(*) filter (where monthly_usage.tier = 'silent') as silent,
    count(*) filter (where monthly_usage.tier = 'gentle') as gentle,
    count(*) filter (where monthly_usage.tier = 'prominent') as prominent,
    count(*) filter (where monthly_usage.tier = 'blocked') as blocked
from public.monthly_usage
group by monthly_usage.billing_period;
comment on view public.billing_period_report is
    'A row per billing period: users with usage in it, their messages, and how many are in which tier by their usage.';
revoke all on public.billing_period_report from public;
revoke all on type public.billing_period_report from public;
grant select on public.billing_period_report to headroom_service, headroom_dashboard, headroom_operator;
