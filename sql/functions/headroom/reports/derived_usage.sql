-- Shows the open period of each user without a usable row, and its usage, even if the period has no row.
create or replace view headroom.derived_usage with (security_barrier) as
with counted as (
    select
        derived.*,
        case when derived.plan is not null then least(
            coalesce(usage.message_count, 0)::bigint + coalesce(derived.spent_messages, 0), 2147483647
        )::integer end as used,
        case
            when usage.held > 0 then headroom.held_messages(usage.user_id, usage.billing_period, usage.held) else 0
        end as held,
        case
            when derived.has_balances then headroom.current_limit(derived.user_id)
            else headroom.effective_limit(
                usage.plan, usage.plan_limit, usage."limit", usage.granted, derived.allowance
            )
        end as "limit",
        usage.updated_at,
        case when derived.may_have_window and derived.window_seconds is not null then headroom.window_taken(
            derived.user_id, derived.window_seconds, headroom.now()
        ) else 0 end as window_taken
    from headroom.derived_entitlements as derived
    left join public.message_usage as usage
        on usage.bucket = derived.bucket and usage.user_id = derived.user_id
            and usage.billing_period = derived.billing_period
    order by null::boolean
),
filled as (
    select
        counted.*, greatest(
            headroom.taken_percent(counted.used::bigint + counted.held, counted."limit"),
            headroom.taken_percent(counted.window_taken, counted.window_messages)
        ) as percent
    from counted
    order by null::boolean
)
select
    filled.bucket, filled.user_id, filled.has_subscription, filled.cycle, filled.billing_period, filled.plan,
    filled.state, filled.denial_reason, filled.used, filled.held, filled."limit",
    case
        when filled.denial_reason is not null then 'blocked'
        when filled.plan is not null then headroom.tier_of(
            filled.percent, filled.gentle_percent, filled.prominent_percent, filled.enforced
        )
    end as tier,
    filled.started_at, filled.resets_at, filled.expires_at, filled.updated_at, filled.enforced
from filled
order by null::boolean;
