-- One row per user: the period that CHECK would answer with now, and the answer.
--
-- A security barrier, so that PostgreSQL computes the answer once per row, and only if it is used.
create or replace view headroom.current_periods with (security_barrier) as
select
    users.user_id,
    coalesce(usage.billing_period, (other.snapshot).billing_period) as billing_period,
    coalesce(usage.plan, (other.snapshot).plan) as plan,
    coalesce(usage.state, (other.snapshot).state) as state,
    coalesce(usage.used, (other.snapshot).used) as used,
    coalesce(usage.held, (other.snapshot).held) as held,
    case when usage.user_id is not null then usage."limit" else (other.snapshot)."limit" end as "limit",
    case
        when usage.user_id is not null then usage.tier
        when (other.snapshot).denial_reason is not null then 'blocked'
        when (other.snapshot).plan is not null then (
            select headroom.fuller_tier(
                (other.snapshot).used::bigint + (other.snapshot).held, (other.snapshot)."limit",
                (other.snapshot).window_used::bigint + (other.snapshot).window_held, (other.snapshot).window_limit,
                plans.gentle_percent, plans.prominent_percent, plans.enforced
            )
            from headroom.plans as plans
            where plans.plan = (other.snapshot).plan
        )
    end as tier,
    coalesce(usage.started_at, (other.snapshot).started_at) as started_at,
    case when usage.user_id is not null then usage.resets_at else (other.snapshot).resets_at end as resets_at,
    case when usage.user_id is not null then usage.expires_at else (other.snapshot).expires_at end as expires_at,
    usage.updated_at,
    coalesce(
        usage.is_open, (other.snapshot).resets_at is not null or (other.snapshot).denial_reason is null
    ) as is_open,
    coalesce(usage.has_no_access, (other.snapshot).denial_reason is not null) as has_no_access,
    headroom.current_answer(users.user_id) as answer
from (
    select subscriber.user_id from headroom.subscribers as subscriber
    where subscriber.bucket = headroom.bucket_of(subscriber.user_id)
    union
    select message_usage.user_id from public.message_usage
) as users
left join headroom.usage_rows as usage
    on usage.bucket = headroom.bucket_of(users.user_id) and usage.user_id = users.user_id
        and usage.is_current and not usage.has_ended
-- Users whose period has no row yet. With an offset, the function is called once per row.
left join lateral (
    select headroom.current_snapshot(users.user_id, null) as snapshot
    where usage.user_id is null offset 0
) as other on true;
