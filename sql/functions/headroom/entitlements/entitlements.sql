-- Returns what these users may send at p_at, a row for each. p_users is distinct and ascending, and all of one bucket;
-- the rows are in its order. p_unknown_users_policy: trial, free or deny, for users without a subscription.
--
-- Which of several subscriptions applies is the order in "chosen". Raises HR006 if a row has a value that a check
-- constraint forbids, and an error if the plan of users without a subscription is missing. Locks nothing.
--
-- In PL/pgSQL, so that a session plans the query once; by itself PostgreSQL would plan it again for each single user,
-- which takes ten times as long as its execution. After the steps of headroom.judged_subscriptions, "judged" sees all
-- subscriptions of a user and "chosen" keeps one. A plan with periods then gets the one of p_at (clock_day,
-- headroom.period_day), and the one that is open (day), which is the next one if the user has already used that.
-- Nothing is sorted by ORDER BY ordinal, because the rows come in that order; it keeps the result of a step from being
-- computed for each use.
create or replace function headroom.entitlements(
    p_bucket smallint, p_users uuid[], p_at timestamptz, p_unknown_users_policy text
) returns setof headroom.entitlement
    language plpgsql stable rows 64
    set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
declare
    v_rows integer;
begin
    return query
    with judged as (
        select
            subscription.*,
            -- A change of any subscription may change which of them applies.
            min(subscription.changes_at) over same_user as next_change_at,
            max(subscription.bought_until) over same_user as paid_until
        from headroom.judged_subscriptions(p_bucket, p_users, p_at, p_unknown_users_policy) as subscription
        window same_user as (partition by subscription.ordinal)
    ),
    chosen as (
        select distinct on (judged.ordinal)
            judged.*,
            headroom.period_day(judged.cycle, p_at, judged.anchor_day, judged.time_zone) as clock_day
        from judged
        order by
            judged.ordinal,
            -- Plans that were bought come first, those with access before the others, then trials. A trial that began
            -- after everything bought before it had ended comes first. The free plan comes last.
            case
                when judged.plan = 'free' then 4
                when judged.cycle <> 'trial' then case when judged.denial_reason is null then 0 else 1 end
                when judged.denial_reason is not null then 3
                when judged.started_at >= judged.paid_until then 0
                else 2
            end,
            -- With access, the largest allowance, so that buying more never gives less.
            case when judged.denial_reason is null
                then headroom.comparable_allowance(judged.cycle, judged.allowance, judged.enforced)
            end desc nulls first,
            -- A refund, then a billing issue, then a cancellation.
            case judged.state
                when 'revoked' then 0 when 'billing_retry' then 1 when 'grace_period' then 1 when 'cancelled' then 2
                when 'free' then 4 else 3
            end,
            -- The one that ends last, so that the result does not depend on the order of the rows.
            coalesce(judged.ends_at, 'infinity') desc, judged.transaction_id desc
    ),
    clocked as (
        select
            chosen.*, headroom.next_period_day(chosen.cycle, chosen.clock_day) as clock_next_day,
            -- Rarely true: the anchor day has become later, the time zone is another one, or the clock was set back.
            case when chosen.clock_day is null then false else coalesce((
                select true from public.message_usage as usage
                where usage.bucket = p_bucket and usage.user_id = chosen.user_id
                    and usage.billing_period > headroom.period_label(chosen.cycle, chosen.clock_day)
                    and headroom.label_cycle(usage.billing_period) = chosen.cycle
                limit 1
            ), false) end as has_later_period
        from chosen
        order by chosen.ordinal
    ),
    opened as (
        select
            clocked.*,
            -- Else the clock would name the period before that of a used row. The used row's period stays.
            clocked.has_later_period and headroom.is_used_period(
                clocked.user_id, headroom.period_label(clocked.cycle, clocked.clock_next_day)
            ) as is_next
        from clocked
        order by clocked.ordinal
    ),
    bounded as (
        select
            opened.*, case when opened.is_next then opened.clock_next_day else opened.clock_day end as day,
            headroom.period_start(
                opened.cycle, case when opened.is_next then opened.clock_next_day else opened.clock_day end,
                opened.anchor_day, opened.time_zone
            ) as begins_at,
            headroom.period_start(
                opened.cycle,
                case
                    when opened.is_next then headroom.next_period_day(opened.cycle, opened.clock_next_day)
                    else opened.clock_next_day
                end,
                opened.anchor_day, opened.time_zone
            ) as resets_at
        from opened
    )
    select
        bounded.user_id, bounded.transaction_id is not null, bounded.plan, bounded.cycle, bounded.state,
        bounded.denial_reason,
        coalesce(headroom.period_label(bounded.cycle, bounded.day), bounded.plan),
        case when bounded.denial_reason = 'no_subscription' then 0 else bounded.allowance end,
        coalesce(bounded.begins_at, bounded.started_at, p_at), bounded.resets_at, bounded.ends_at,
        case
            when bounded.day is not null and bounded.denial_reason <> 'no_subscription' then bounded.plan
            else bounded.previous_plan
        end,
        bounded.renews, least(bounded.next_change_at, bounded.resets_at, 'infinity'),
        (select revised.revision from headroom.plan_revision as revised),
        case
            when bounded.day is null then bounded.spent_messages::integer
            when bounded.has_later_period
                then headroom.later_messages(bounded.user_id, bounded.cycle, bounded.clock_day, p_at)
        end,
        bounded.enforced, bounded.window_messages, bounded.window_seconds
    from bounded
    order by bounded.ordinal;
    get diagnostics v_rows = row_count;
    -- headroom.dated_subscriptions has no row for a user whose plan is missing.
    if v_rows < cardinality(p_users) then
        raise exception 'headroom.plans has no plan named %, which users without a subscription are on',
            case p_unknown_users_policy when 'trial' then 'trial' else 'free' end
            using hint = 'Insert it, or start the service with another --unknown-users.';
    end if;
end
$$;
