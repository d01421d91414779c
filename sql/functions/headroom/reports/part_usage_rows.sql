-- Shows the rows of headroom.usage_parts with their limits: those of the plan as it is now, and of a period that is
-- over those with which messages were last counted. The columns of the window are null if none is open. Instants are
-- whole seconds. Each row has a usage row, by whose primary key a user is found.
--
-- The ORDER BY sorts nothing: each column is computed once, and what is held only where holds have ended.
create or replace view headroom.part_usage_rows as
with counted as (
    select
        parts.bucket, parts.user_id, parts.billing_period, parts.kind, parts.name, parts.used, parts.held,
        parts."limit", parts.window_opened_at, parts.window_ends_at, parts.window_used, parts.window_held,
        parts.window_limit, parts.ctid, usage.plan,
        usage.plan is not null and (usage.resets_at <= headroom.now()) is not true as is_open,
        case
            when parts.holds_end_at <= headroom.now() then headroom.part_holds(
                parts.user_id, parts.billing_period, parts.kind, parts.name, parts.window_opened_at
            )
        end as holds
    from public.message_usage as usage
    join headroom.usage_parts as parts
        on parts.bucket = usage.bucket and parts.user_id = usage.user_id
            and parts.billing_period = usage.billing_period
    order by null::boolean
),
limited as (
    select
        counted.bucket, counted.user_id, counted.billing_period, counted.kind, counted.name,
        case counted.kind when 'model' then coalesce(limits.label, counted.name) end as label,
        counted.used, coalesce(counted.holds[1], counted.held) as held,
        case when counted.is_open then limits.allowance else counted."limit" end as "limit",
        counted.window_used, coalesce(counted.holds[2], counted.window_held) as window_held,
        case
            when counted.window_opened_at <= headroom.now() + interval '1 hour' and headroom.window_end(
                counted.window_opened_at, counted.window_ends_at,
                case when counted.is_open then limits.window_seconds end
            ) > headroom.now()
                then case when counted.is_open then limits.window_messages else counted.window_limit end
        end as window_limit,
        headroom.window_end(
            counted.window_opened_at, counted.window_ends_at, case when counted.is_open then limits.window_seconds end
        ) as window_ends_at,
        limits.weight, limits.fallback, counted.plan, counted.window_opened_at, limits.window_seconds,
        counted.is_open, counted.ctid, plans.gentle_percent, plans.prominent_percent, plans.enforced
    from counted
    left join headroom.plans as plans on plans.plan = counted.plan
    left join headroom.plan_limits as limits
        on limits.plan = counted.plan and limits.kind = counted.kind
            and limits.name = case counted.kind when 'member' then '*' else counted.name end
    order by null::boolean
)
select
    limited.user_id, limited.user_id as user, limited.billing_period as period, limited.kind, limited.name,
    limited.label, limited.used, limited.held, limited."limit",
    headroom.part_tier(
        limited.used, limited.held, limited."limit", limited.window_used, limited.window_held, limited.window_limit,
        limited.gentle_percent, limited.prominent_percent, limited.enforced
    ) as tier,
    case when limited.window_limit is not null then limited.window_used end as window_used,
    case when limited.window_limit is not null then limited.window_held end as window_held, limited.window_limit,
    case when limited.window_limit is not null then date_trunc('second', limited.window_ends_at) end as window_resets,
    coalesce(limited.weight, 1) as weight, limited.fallback, limited.bucket, limited.plan,
    case when limited.window_limit is not null then limited.window_opened_at end as window_opened_at,
    limited.window_seconds, limited.is_open, limited.ctid
from limited;
comment on view headroom.part_usage_rows is 'Messages of models and members, with the limits that apply to them.';
grant select on headroom.part_usage_rows to headroom_service, headroom_operator;
