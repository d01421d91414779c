-- Words an answer to a request for p_messages (0 for a reading) whose standing after it is p_standing.
create or replace function headroom.answer_to(
    p_user_id uuid, p_standing headroom.standing, p_messages integer
) returns headroom.answer
    language sql stable
begin atomic
    with numbers as (
        select
            (p_standing).used::bigint as used,
            (p_standing).held::bigint as held,
            (p_standing)."limit"::bigint as "limit",
            (p_standing).lapse,
            plans,
            greatest(1, least(spans.days, 1 + floor(
                extract(epoch from (p_standing).observed_at - (p_standing).started_at) / 86400
            )::integer)) as day,
            spans.days
        from headroom.plans as plans
        -- A trial with an end of its own, such as a store's, has the days until that.
        cross join lateral (
            select case
                when (p_standing).expires_at is null then plans.trial_days
                else greatest(1, ceil(
                    extract(epoch from (p_standing).expires_at - (p_standing).started_at) / 86400
                )::integer)
            end as days
        ) as spans
        where plans.plan = (p_standing).plan
    ),
    tiers as (
        select
            numbers.*,
            case when lapse is not null then 'blocked' else headroom.tier_of(
                used + held, "limit", (plans).gentle_percent, (plans).prominent_percent
            ) end as tier,
            headroom.tier_of(
                used + held - (p_standing).messages, "limit", (plans).gentle_percent, (plans).prominent_percent
            ) as tier_before,
            case
                when lapse is not null then 0
                when "limit" is not null then greatest("limit" - used - held, 0)
            end as remaining,
            -- A reading says only why there is no access at all.
            case
                when (p_standing).messages > 0 then null
                when lapse is not null then lapse
                when (plans).cycle = 'lifetime' and "limit" = 0 then 'no_subscription'
                when p_messages = 0 then null
                when (plans).cycle = 'trial' then 'trial_limit_reached'
                else 'limit_reached'
            end as reason,
            -- When messages really come back: never to whom access has ended by then.
            case
                when ((p_standing).expires_at <= (p_standing).resets_at) is not true
                    and (p_standing).resets_at > (p_standing).observed_at
                    then (p_standing).resets_at
            end as comes_back_at,
            (plans).cycle = 'trial' as is_trial
        from numbers
    ),
    banners as (
        select
            tiers.*,
            case
                when tier = 'blocked' and is_trial and lapse is null then 'blocked_trial'
                when tier = 'blocked' and is_trial and lapse = 'trial_ended'
                    then case when used + held >= "limit" then 'blocked_trial' else 'blocked_trial_ended' end
                when tier = 'blocked' and lapse is null and (plans).cycle = 'monthly'
                    then case when comes_back_at is null then 'blocked_monthly_undated' else 'blocked_monthly' end
                when tier = 'blocked' and (p_standing).state = 'free' and (p_standing).previous_plan is null
                    then 'blocked_never_subscribed'
                when tier = 'blocked' then 'blocked_no_access'
                when is_trial then 'trial'
                when tier = 'prominent' and comes_back_at is null then 'prominent_undated'
                when tier = 'gentle' and (plans).cycle = 'lifetime' then 'gentle_lifetime'
                when tier in ('gentle', 'prominent') then tier
            end as banner
        from tiers
    )
    select row(
        case when p_messages = 0 then 'OK' when reason is null then 'ALLOWED' else 'BLOCKED' end,
        p_user_id,
        (plans).plan,
        (p_standing).state,
        tier,
        case
            when tier = 'blocked' then 'blocked'
            when is_trial then 'trial'
            when tier = 'silent' then 'hidden'
            else 'compact'
        end,
        used::integer,
        nullif(held, 0)::integer,
        "limit"::integer,
        remaining::integer,
        (p_standing).billing_period,
        case when lapse is null and "limit" is not null then (p_standing).resets_at end,
        case when is_trial or (p_standing).state = 'cancelled' then (p_standing).expires_at end,
        case when is_trial then day end,
        case when is_trial then days end,
        case when (p_standing).messages > 0 and tier <> tier_before then tier end,
        reason,
        case
            when reason = 'limit_reached' and p_messages <= coalesce((plans).allowance, p_messages)
                then ceil(extract(epoch from comes_back_at - (p_standing).observed_at))::bigint
        end,
        (p_standing).previous_plan,
        case
            when is_trial then headroom.words('label_trial', null, used, "limit", remaining, null, (plans).label, day, days)
            else (plans).label
        end,
        headroom.words(
            case
                when is_trial then 'accessible_trial'
                when (plans).cycle = 'lifetime' then 'accessible_lifetime'
                else 'accessible_monthly'
            end || case when "limit" is null and not is_trial then '_unlimited' else '' end,
            used, used, "limit", remaining, null, null, null, null
        ),
        case
            -- A store can tell of the cancellation before it tells the date; without one the sentence has a hole.
            when (p_standing).state = 'cancelled' and (p_standing).expires_at is not null then headroom.words(
                'cancelled', null, used, "limit", remaining, (p_standing).expires_at, null, null, null
            )
            when (p_standing).state in ('grace_period', 'billing_retry')
                then headroom.words('billing_issue', null, used, "limit", remaining, null, null, null, null)
        end,
        case
            when banner is not null
                then headroom.words(banner, remaining, used, "limit", remaining, comes_back_at, null, null, null)
        end
    )::headroom.answer
    from banners;
end;
