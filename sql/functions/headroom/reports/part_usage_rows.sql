-- Shows the rows of headroom.usage_parts with their limits: those of the plan as it is now, and of a period that is
-- over those with which messages were last counted. The columns of the window are null if none is open. The tier is
-- that of the fuller limit. Each row has a usage row, by whose primary key a user is found.
create or replace view headroom.part_usage_rows as
select
    parts.bucket, parts.user_id, parts.billing_period, parts.kind, parts.name,
    case parts.kind when 'model' then coalesce(limits.label, parts.name) end as label,
    parts.used, coalesce(holds.held, parts.held) as held, present."limit",
    headroom.tier_of(
        greatest(
            headroom.taken_percent(parts.used::bigint + coalesce(holds.held, parts.held), present."limit"),
            headroom.taken_percent(opened.used::bigint + opened.held, opened."limit")
        ), plans.gentle_percent, plans.prominent_percent, plans.enforced
    ) as tier,
    opened.used as window_used, opened."limit" as window_limit, opened.ends_at as window_resets,
    limits.weight, limits.fallback
from public.message_usage as usage
join headroom.usage_parts as parts
    on parts.bucket = usage.bucket and parts.user_id = usage.user_id and parts.billing_period = usage.billing_period
left join headroom.plans as plans on plans.plan = usage.plan
left join headroom.plan_limits as limits
    on limits.plan = usage.plan and limits.kind = parts.kind
        and limits.name = case parts.kind when 'member' then '*' else parts.name end
left join lateral (
    select expired.held, expired.window_held
    from headroom.held_parts(
        parts.user_id, parts.billing_period, parts.kind, parts.name, parts.window_opened_at, headroom.now()
    ) as expired
    where parts.holds_end_at <= headroom.now()
    -- With an offset, the function is called for such rows only.
    offset 0
) as holds on true
cross join lateral (
    select
        case when one.is_open then limits.allowance else parts."limit" end as "limit",
        case when one.is_open then limits.window_messages else parts.window_limit end as window_limit,
        headroom.window_end(
            parts.window_opened_at, parts.window_ends_at, case when one.is_open then limits.window_seconds end
        ) as window_ends_at
    from (
        select usage.plan is not null and (usage.resets_at <= headroom.now()) is not true as is_open
    ) as one
) as present
left join lateral (
    select
        parts.window_used as used, coalesce(holds.window_held, parts.window_held) as held,
        present.window_limit as "limit", present.window_ends_at as ends_at
    where present.window_ends_at > headroom.now() and present.window_limit is not null
        and parts.window_opened_at <= headroom.now() + interval '1 hour'
) as opened on true;
comment on view headroom.part_usage_rows is 'Messages of models and members, with the limits that apply to them.';
grant select on headroom.part_usage_rows to headroom_service;
