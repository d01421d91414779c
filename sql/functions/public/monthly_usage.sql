-- What remains of no limit is null, like the limit; greatest() of a null would be 0.
create or replace view public.monthly_usage as
select
    usage.user_id,
    usage.billing_period,
    usage.plan,
    usage.state,
    usage.message_count as used,
    holds.held,
    usage."limit",
    case
        when usage."limit" is not null
            then greatest(usage."limit"::bigint - usage.message_count - holds.held, 0)::integer
    end as remaining,
    headroom.tier_of(
        usage.message_count::bigint + holds.held, usage."limit", plans.gentle_percent, plans.prominent_percent
    ) as tier,
    usage.resets_at,
    usage.expires_at,
    usage.updated_at
from public.message_usage as usage
cross join lateral (select headroom.held_now(usage) as held) as holds
left join headroom.plans as plans on plans.plan = usage.plan;
comment on view public.monthly_usage is
    'A row per user and billing period. state is as of the row''s last message; "limit" null is unlimited.';
revoke all on public.monthly_usage from public;
revoke all on type public.monthly_usage from public;
grant select on public.monthly_usage to headroom_service, headroom_dashboard, headroom_operator;
