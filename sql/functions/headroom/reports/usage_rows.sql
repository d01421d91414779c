-- Shows usage rows as they would be answered now.
--
-- is_current: whether the row has the period that an answer to its user shows. Plan, state, dates and numbers are then
-- those of the answer, and the tier is blocked if the next message would be refused. Other rows show what was written
-- with their last message; a row whose user may not send at all is blocked.
-- has_no_access: whether the user may not send, whatever the count.
-- is_open: whether the period counts for its user now. A current period that never resets is not open without access,
-- which is a trial that is over. A user has at most one open period.
-- has_ended: whether the columns of the row alone say that it is not current. A condition on it saves time.
--
-- Each row is judged by itself, because reports read ranges of pages.
create or replace view headroom.usage_rows as
select
    usage.bucket,
    usage.user_id,
    usage.billing_period,
    coalesce(derived.plan, usage.plan) as plan,
    -- The row may have the state of an earlier trial, which an operator had ended.
    case usage.standing when 'ended_trial' then 'trial' else coalesce(derived.state, usage.state) end as state,
    usage.message_count,
    coalesce(derived.used, usage.message_count) as used,
    case usage.held
        when 0 then 0
        else coalesce(
            derived.held, headroom.held_messages(usage.user_id, usage.billing_period, usage.held)
        )
    end as held,
    case
        when usage.standing in ('edited', 'ended_trial') then headroom.effective_limit(
            usage.plan, usage.plan_limit, usage."limit", usage.granted, usage.allowance
        )
        when derived.plan is not null then derived."limit"
        when usage.standing = 'usable' then usage."limit"
        else headroom.plain_limit(
            usage.message_count, usage.held, usage."limit", usage.extra, usage.usable_count
        )
    end as "limit",
    case
        -- These are nearly all rows. PostgreSQL inlines headroom.tier_of only with such simple arguments, and a call
        -- per row would take most of the time of a report.
        when usage.standing = 'usable' and (usage.held = 0 or usage.window_percent is not null)
            or usage.standing = 'over' and usage.held = 0 and usage.extra is null
            then headroom.tier_of(
                greatest(usage.percent, case when usage.standing = 'usable' then usage.window_percent end),
                usage.gentle_percent, usage.prominent_percent, usage.enforced
            )
        when usage.standing in ('ended_trial', 'denied') or derived.denial_reason is not null then 'blocked'
        when derived.plan is not null then derived.tier
        else headroom.tier_of(
            headroom.taken_percent(
                usage.message_count::bigint + headroom.held_messages(usage.user_id, usage.billing_period, usage.held),
                case usage.standing
                    when 'edited' then headroom.effective_limit(
                        usage.plan, usage.plan_limit, usage."limit", usage.granted, usage.allowance
                    )
                    when 'usable' then usage."limit"
                    else headroom.plain_limit(
                        usage.message_count, usage.held, usage."limit", usage.extra, usage.usable_count
                    )
                end
            ),
            usage.gentle_percent, usage.prominent_percent, usage.enforced
        )
    end as tier,
    coalesce(derived.started_at, usage.started_at) as started_at,
    case
        when derived.plan is not null then derived.resets_at
        else usage.resets_at
    end as resets_at,
    case
        when derived.plan is not null then derived.expires_at
        when usage.standing = 'ended_trial' then (
            -- An edit of the plan's days moves the end.
            select ended.expires_at from headroom.derived_entitlements as ended
            where ended.bucket = usage.bucket and ended.user_id = usage.user_id
        )
        else usage.expires_at
    end as expires_at,
    usage.updated_at,
    usage.standing in ('usable', 'edited', 'ended_trial') or derived.plan is not null as is_current,
    case
        when usage.standing = 'usable' then true
        when usage.standing = 'over' then false
        when derived.plan is not null
            then derived.resets_at is not null or derived.denial_reason is null
        else usage.standing in ('edited', 'without_plan', 'denied')
    end as is_open,
    usage.has_ended,
    usage.standing in ('ended_trial', 'denied') or coalesce(derived.denial_reason is not null, false) as has_no_access,
    usage.is_usable,
    usage.ctid
from headroom.judged_usage_rows as usage
left join lateral (
    select one.* from headroom.derived_usage as one
    where usage.standing = 'unknown' and one.bucket = usage.bucket and one.user_id = usage.user_id
        and one.billing_period = usage.billing_period
    -- This keeps the subquery lateral: a join would derive the periods of all users for each range of pages.
    order by null::boolean
) as derived on true;
comment on view headroom.usage_rows is
    'Usage rows as they would be answered now, and whether their period is the open one of their user.';
grant select on headroom.usage_rows to headroom_service, headroom_operator;
