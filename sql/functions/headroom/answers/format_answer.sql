-- Returns the fields of an answer line for a user whose usage snapshot is p_snapshot. p_messages: the number of
-- messages requested, 0 if the request only reads.
--
-- OFFSET 0 keeps the columns of a step from being repeated for each of their uses: preparing those expressions took
-- four times as long as all the rest.
create or replace function headroom.format_answer(
    p_user_id uuid, p_snapshot headroom.usage_snapshot, p_messages integer
) returns headroom.answer
    language sql stable
begin atomic
    with numbers as (
        select
            (p_snapshot).used::bigint as used,
            (p_snapshot).held::bigint as held,
            (p_snapshot)."limit"::bigint as "limit",
            (p_snapshot).used::bigint + (p_snapshot).held as taken,
            (p_snapshot).window_limit::bigint as window_limit,
            (p_snapshot).window_used::bigint as window_used,
            (p_snapshot).window_used::bigint + (p_snapshot).window_held as window_taken,
            (p_snapshot).denial_reason as denial_reason,
            plans,
            greatest(1, least(spans.days, 1 + floor(
                extract(epoch from (p_snapshot).observed_at - (p_snapshot).started_at) / 86400
            )::integer)) as day,
            spans.days
        from headroom.plans as plans
        -- The days of a trial with an end of its own, such as a store's trial, follow from that end.
        cross join lateral (
            select case
                when (p_snapshot).expires_at is null then plans.trial_days
                else greatest(1, ceil(
                    extract(epoch from (p_snapshot).expires_at - (p_snapshot).started_at) / 86400
                )::integer)
            end as days
        ) as spans
        where plans.plan = (p_snapshot).plan
        offset 0
    ),
    tiers as (
        select
            numbers.*,
            case when denial_reason is not null then 'blocked' else headroom.fuller_tier(
                taken, "limit", window_taken, window_limit, (plans).gentle_percent, (plans).prominent_percent,
                (plans).enforced
            ) end as tier,
            headroom.fuller_tier(
                taken - (p_snapshot).messages, "limit", window_taken - (p_snapshot).messages, window_limit,
                (plans).gentle_percent, (plans).prominent_percent, (plans).enforced
            ) as tier_before,
            headroom.is_window_fuller(taken, "limit", window_taken, window_limit) as is_window_fuller,
            case
                when denial_reason is not null then 0
                when "limit" is not null then greatest("limit" - taken, 0)
            end as remaining,
            case when denial_reason is not null then 0 else greatest(window_limit - window_taken, 0) end
                as window_remaining,
            -- A request that only reads has a reason only if the user has no access.
            case
                when (p_snapshot).messages > 0 then null
                when denial_reason is not null then denial_reason
                when not (plans).enforced then null
                when (plans).cycle = 'lifetime' and "limit" = 0 then 'no_subscription'
                when p_messages = 0 then null
                when taken >= "limit" then case
                    when (plans).cycle = 'trial' then 'trial_limit_reached' else 'limit_reached'
                end
                when window_taken >= window_limit then 'window_limit_reached'
                when taken + p_messages > "limit" then 'exceeds_remaining'
                else 'window_exceeds_remaining'
            end as reason,
            -- When the user can send again: null if access ends before the reset.
            case
                when ((p_snapshot).expires_at <= (p_snapshot).resets_at) is not true
                    and (p_snapshot).resets_at > (p_snapshot).observed_at
                    then (p_snapshot).resets_at
            end as available_at,
            -- When the window ends and the user can send again: null if access ends before that.
            case
                when denial_reason is null and ((p_snapshot).expires_at <= (p_snapshot).window_ends_at) is not true
                    then (p_snapshot).window_ends_at
            end as window_available_at,
            (plans).cycle = 'trial' as is_trial,
            -- A sentence says "this month" only then. A month may begin on another day.
            (plans).cycle = 'monthly' and coalesce(
                extract(day from (p_snapshot).resets_at at time zone 'UTC') = 1, true
            ) as is_calendar_month,
            -- The day after a period of days, in the plan's time zone. A sentence says this day: in UTC, midnight may
            -- be on another one.
            case
                when (plans).cycle in ('weekly', 'daily') then headroom.next_period_day(
                    (plans).cycle, headroom.label_day((p_snapshot).billing_period)
                )::timestamp at time zone 'UTC'
            end as next_day,
            'state_' || case (p_snapshot).state
                when 'grace_period' then 'billing_issue' when 'billing_retry' then 'billing_issue'
                when 'revoked' then 'refunded'
                else (p_snapshot).state
            end as state_word
        from numbers
        offset 0
    ),
    banners as (
        select
            tiers.*,
            is_window_fuller and tier <> 'silent' as speaks_of_window,
            case
                when tier = 'blocked' and denial_reason is null and is_window_fuller
                    then case when window_available_at is null then 'blocked_undated' else 'blocked_window' end
                when tier = 'blocked' and is_trial and denial_reason is null then 'blocked_trial'
                when tier = 'blocked' and is_trial and denial_reason = 'trial_ended'
                    then case when taken >= "limit" then 'blocked_trial' else 'blocked_trial_ended' end
                when tier = 'blocked' and denial_reason is null and is_calendar_month
                    then case when available_at is null then 'blocked_monthly_undated' else 'blocked_monthly' end
                when tier = 'blocked' and denial_reason is null and headroom.is_periodic((plans).cycle)
                    then case when available_at is null then 'blocked_undated' else 'blocked_until' end
                when tier = 'blocked' and (p_snapshot).previous_plan is null
                    and ((p_snapshot).state = 'free' or denial_reason = 'no_subscription')
                    then 'blocked_never_subscribed'
                when tier = 'blocked' then 'blocked_no_access'
                -- The limit is used up and not enforced: the user can go on.
                when is_window_fuller and window_taken >= window_limit then null
                when is_window_fuller and tier in ('gentle', 'prominent') then case
                    when window_available_at is not null then 'window'
                    when tier = 'gentle' then 'gentle_lifetime'
                    else 'prominent_undated'
                end
                when is_trial then 'trial'
                when taken >= "limit" then null
                when tier = 'prominent' and available_at is null then 'prominent_undated'
                when tier = 'gentle' and not is_calendar_month then case
                    when headroom.is_periodic((plans).cycle) and available_at is not null then 'gentle_until'
                    else 'gentle_lifetime'
                end
                -- A lifetime allowance always shows its counter.
                when (plans).cycle = 'lifetime' and "limit" is not null and tier = 'silent' then 'lifetime'
                when tier in ('gentle', 'prominent') then tier
            end as banner
        from tiers
        offset 0
    ),
    details as (
        select subscription.price, subscription.currency, subscription.store
        from headroom.subscription_details(
            p_user_id, (p_snapshot).state, (p_snapshot).plan, (p_snapshot).expires_at, (p_snapshot).renews
        ) as subscription
    )
    select row(
        case when p_messages = 0 then 'OK' when reason is null then 'ALLOWED' else 'BLOCKED' end,
        p_user_id,
        (plans).plan,
        (p_snapshot).state,
        tier,
        case
            when tier = 'blocked' then 'blocked'
            when is_trial then 'trial'
            when tier = 'silent' and ((plans).cycle <> 'lifetime' or "limit" is null) then 'hidden'
            else 'compact'
        end,
        used::integer,
        nullif(held, 0)::integer,
        "limit"::integer,
        remaining::integer,
        (p_snapshot).billing_period,
        case when denial_reason is null and "limit" is not null then (p_snapshot).resets_at end,
        -- An active subscription that a store renews does not end then.
        case
            when is_trial or (p_snapshot).state = 'cancelled'
                or (p_snapshot).state in ('active', 'free') and (p_snapshot).renews is not true
                then (p_snapshot).expires_at
        end,
        case when is_trial then day end,
        case when is_trial then days end,
        case when (p_snapshot).messages > 0 and tier <> tier_before then tier end,
        reason,
        case
            when reason in ('limit_reached', 'exceeds_remaining', 'window_limit_reached', 'window_exceeds_remaining')
                -- Null if one of the two that refuse the messages never allows them.
                then ceil(extract(epoch from case
                    when taken + p_messages <= "limit" or "limit" is null
                        then case when p_messages <= window_limit then window_available_at end
                    when is_trial or p_messages > (plans).allowance then null
                    when window_taken + p_messages <= window_limit or window_limit is null then available_at
                    when p_messages > window_limit or window_available_at is null or available_at is null then null
                    else greatest(available_at, window_available_at)
                end - (p_snapshot).observed_at))::bigint
        end,
        (p_snapshot).previous_plan,
        case
            when is_trial
                then headroom.format_sentence(
                    'label_trial', null, used, "limit", remaining, null, (plans).label, day, days
                )
            else (plans).label
        end,
        headroom.format_sentence(state_word, null, used, "limit", remaining, null, null, null, null),
        headroom.format_sentence(
            case
                when is_trial then 'accessible_trial'
                when (plans).cycle = 'lifetime' then 'accessible_lifetime'
                when is_calendar_month then 'accessible_monthly'
                else 'accessible_until'
            end || case when "limit" is null and not is_trial then '_unlimited' else '' end,
            used, used, "limit", remaining,
            coalesce(next_day, (p_snapshot).resets_at), null, null, null
        ),
        (select details.price from details),
        (select details.currency from details),
        headroom.manage_address((select details.store from details)),
        case
            when state_word = 'state_billing_issue' then headroom.format_sentence(
                'steps_billing_issue', null, used, "limit", remaining, null, null, null, null
            )
        end,
        case
            -- A store may report the cancellation before its date. The sentence needs the date.
            when (p_snapshot).state = 'cancelled' and (p_snapshot).expires_at is not null then headroom.format_sentence(
                'cancelled', null, used, "limit", remaining, (p_snapshot).expires_at, null, null, null
            )
            when (p_snapshot).state = 'trial' and denial_reason is null and not (p_snapshot).renews
                and (p_snapshot).expires_at is not null
                then headroom.format_sentence(
                    'cancelled_trial', null, used, "limit", remaining, (p_snapshot).expires_at, null, null, null
                )
            when (p_snapshot).state = 'grace_period' then headroom.format_sentence(
                case when (p_snapshot).expires_at is null then 'billing_issue_undated' else 'billing_issue' end,
                null, used, "limit", remaining, (p_snapshot).expires_at, null, null, null
            )
            when (p_snapshot).state = 'billing_retry'
                then headroom.format_sentence('billing_retry', null, used, "limit", remaining, null, null, null, null)
        end,
        case
            when banner is not null
                then headroom.format_sentence(
                    banner, case when speaks_of_window then window_remaining else remaining end,
                    case when speaks_of_window then window_used else used end,
                    case when speaks_of_window then window_limit else "limit" end,
                    case when speaks_of_window then window_remaining else remaining end,
                    case when available_at is not null then coalesce(next_day, available_at) end, null, null, null,
                    ceil(extract(epoch from window_available_at - (p_snapshot).observed_at))::bigint
                )
        end,
        case when (p_snapshot).messages > 0 and (taken > "limit" or window_taken > window_limit) then true end,
        window_limit::integer,
        window_used::integer,
        case when window_limit is not null then window_remaining end::integer,
        case when denial_reason is null then (p_snapshot).window_ends_at end
    )::headroom.answer
    from banners;
end;
