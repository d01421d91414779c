-- One row per user: the period that CHECK would answer with now, and the answer.
--
-- A security barrier, and an ORDER BY that sorts nothing, so that PostgreSQL computes the answer once per row, and only
-- if it is used (headroom.judged_usage_rows).
create or replace view headroom.current_periods with (security_barrier) as
select
    users.user_id,
    coalesce(users.billing_period, (users.snapshot).billing_period) as billing_period,
    coalesce(users.plan, (users.snapshot).plan) as plan,
    coalesce(users.state, (users.snapshot).state) as state,
    coalesce(users.used, (users.snapshot).used) as used,
    coalesce(users.held, (users.snapshot).held) as held,
    case when users.has_row then users."limit" else (users.snapshot)."limit" end as "limit",
    case
        when users.has_row then users.tier
        when (users.snapshot).denial_reason is not null then 'blocked'
        when (users.snapshot).plan is not null then (
            select headroom.fuller_tier(
                (users.snapshot).used::bigint + (users.snapshot).held, (users.snapshot)."limit",
                (users.snapshot).window_used::bigint + (users.snapshot).window_held, (users.snapshot).window_limit,
                plans.gentle_percent, plans.prominent_percent, plans.enforced
            )
            from headroom.plans as plans
            where plans.plan = (users.snapshot).plan
        )
    end as tier,
    coalesce(users.started_at, (users.snapshot).started_at) as started_at,
    case when users.has_row then users.resets_at else (users.snapshot).resets_at end as resets_at,
    case when users.has_row then users.expires_at else (users.snapshot).expires_at end as expires_at,
    users.updated_at,
    coalesce(
        users.is_open, (users.snapshot).resets_at is not null or (users.snapshot).denial_reason is null
    ) as is_open,
    coalesce(users.has_no_access, (users.snapshot).denial_reason is not null) as has_no_access,
    headroom.current_answer(users.user_id) as answer
from headroom.answered_users as users
order by null::boolean;
