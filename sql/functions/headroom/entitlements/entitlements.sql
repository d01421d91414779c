-- Returns what these users may send at p_at, in a row for each. p_users is distinct and ascending, and all of one
-- bucket; the rows are in its order. p_unknown_users_policy: trial, free or deny, for users without a subscription.
--
-- Raises HR006 if a row has a value that a check constraint forbids, and an error if the plan of users without a
-- subscription is missing. Locks nothing. headroom.derived_entitlements takes the same steps for all users at once, and
-- headroom.chosen_plan those that choose the subscription.
--
-- It is in PL/pgSQL, so that a session plans the query once; planning it again for each user would take ten times as
-- long as its execution. "inputs" has a row for each subscription, and one for a user without any. "judged" sees all
-- subscriptions of a user and "chosen" keeps one (headroom.subscription_rank). A plan with periods then gets that of
-- p_at: for a store's subscription the one that was paid (paid, headroom.paid_period), otherwise the calendar's
-- (clock_day, headroom.period_day), or a later one that is already used (day, headroom.open_day). ORDER BY ordinal
-- sorts nothing: the rows come in that order, and it keeps the result of a step from being computed for each use.
--
-- Each lateral subquery has a limit or an offset, so that it looks each user up in an index: as a join, it could become
-- a walk over the whole index (docs/decisions/0003-lock-order.md).
create or replace function headroom.entitlements(
    p_bucket smallint, p_users uuid[], p_at timestamptz, p_unknown_users_policy text
) returns setof headroom.entitlement
    language plpgsql stable rows 64
    set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
declare
    v_rows integer;
    v_leeway constant interval := headroom.renewal_leeway();
    v_starting_plan constant text := case p_unknown_users_policy when 'trial' then 'trial' else 'free' end;
begin
    return query
    with inputs as (
        select
            request.ordinal, request.user_id, coalesce(subscriber.anchor_day, 1)::integer as anchor_day,
            subscriber.previous_plan, subscriber.has_balances, spent.messages as spent_messages,
            subscription.original_transaction_id as transaction_id, plans.plan, plans.cycle,
            coalesce(plans.time_zone, 'UTC') as time_zone, plans.allowance, plans.enforced, plans.window_messages,
            plans.window_seconds, plans.trial_days, subscription.started_at as subscribed_at, subscription.expires_at,
            subscription.grace_until, subscription.billing_issue_at, subscription.unsubscribed_at,
            subscription.revoked_at, subscription.renews as is_renewed, subscription.period_started_at,
            subscription.period_ends_at, subscription.period_day,
            coalesce(subscriber.trial_started_at, spent.trial_started_at) as trial_started_at,
            coalesce(subscriber.trial_ends_at, spent.trial_ends_at) as trial_ends_at
        from unnest(p_users) with ordinality as request (user_id, ordinal)
        left join lateral (
            select
                one.user_id, one.anchor_day, one.previous_plan, one.trial_ends_at, one.has_balances,
                least(one.trial_started_at, one.store_trial_started_at) as trial_started_at
            from headroom.subscribers as one
            where one.bucket = p_bucket and one.user_id = request.user_id
            limit 1
        ) as subscriber on true
        -- This is what a forgotten user has spent, otherwise null.
        cross join lateral (
            select
                min(one.trial_started_at) filter (where v_starting_plan = 'trial') as trial_started_at,
                min(one.trial_ends_at) filter (where v_starting_plan = 'trial') as trial_ends_at,
                sum(one.messages) filter (where one.plan = v_starting_plan) as messages
            from headroom.spent_trials as one
            where subscriber.user_id is null and p_unknown_users_policy <> 'deny'
                and one.bucket = p_bucket and one.digest = headroom.keyed_digest(
                    request.user_id,
                    (select secrets.inner_key from headroom.secrets where secrets.name = 'spent trials'),
                    (select secrets.outer_key from headroom.secrets where secrets.name = 'spent trials')
                )
        ) as spent
        left join lateral (
            select one.*
            from headroom.subscriptions as one
            where one.bucket = p_bucket and one.user_id = request.user_id
            offset 0
        ) as subscription on true
        -- A user without a subscription gets a trial that starts now, the free plan, or nothing. There is no row if the
        -- plan is missing.
        cross join lateral (
            select one.* from headroom.plans as one
            where one.plan = coalesce(subscription.plan, v_starting_plan)
            limit 1
        ) as plans
        where headroom.are_valid_inputs(
                least(
                    subscriber.trial_started_at, subscriber.trial_ends_at, spent.trial_started_at, spent.trial_ends_at,
                    subscription.started_at, subscription.expires_at, subscription.grace_until,
                    subscription.billing_issue_at, subscription.unsubscribed_at, subscription.revoked_at
                ),
                greatest(
                    subscriber.trial_started_at, subscriber.trial_ends_at, spent.trial_started_at, spent.trial_ends_at,
                    subscription.started_at, subscription.expires_at, subscription.grace_until,
                    subscription.billing_issue_at, subscription.unsubscribed_at, subscription.revoked_at
                ),
                subscriber.anchor_day,
                least(spent.messages, plans.allowance, plans.gentle_percent, plans.prominent_percent),
                greatest(plans.gentle_percent, plans.prominent_percent), plans.cycle, plans.trial_days
            )
            or headroom.raise_invalid_inputs(request.user_id, p_unknown_users_policy)
        order by request.ordinal
    ),
    judged as (
        select
            inputs.ordinal, inputs.user_id, inputs.anchor_day, inputs.previous_plan, inputs.has_balances,
            inputs.spent_messages,
            inputs.transaction_id, inputs.plan, inputs.cycle, inputs.time_zone, inputs.allowance, inputs.enforced,
            inputs.window_messages, inputs.window_seconds, inputs.expires_at, inputs.period_started_at,
            inputs.period_ends_at, inputs.period_day, judgement.*,
            -- A change of any subscription may change which of them applies.
            min(judgement.changes_at) over same_user as next_change_at,
            max(judgement.bought_until) over same_user as last_bought_until
        from inputs
        cross join lateral headroom.judged_subscription(
            p_at, p_unknown_users_policy, inputs.transaction_id, inputs.plan, inputs.cycle, inputs.trial_days,
            headroom.trial_start(inputs.user_id, inputs.transaction_id, inputs.plan, inputs.subscribed_at, p_at),
            inputs.expires_at, inputs.grace_until, inputs.billing_issue_at, inputs.unsubscribed_at,
            inputs.revoked_at, inputs.is_renewed, inputs.trial_started_at, inputs.trial_ends_at, v_leeway
        ) as judgement
        window same_user as (partition by inputs.ordinal)
    ),
    chosen as (
        select distinct on (judged.ordinal) judged.*
        from judged
        order by
            judged.ordinal,
            headroom.subscription_rank(
                judged.plan, judged.cycle, judged.allowance, judged.enforced, judged.state, judged.denial_reason,
                judged.started_at, judged.last_bought_until
            ),
            coalesce(judged.ends_at, 'infinity') desc, judged.transaction_id desc
    ),
    paid as (
        select
            chosen.ordinal, chosen.user_id, chosen.anchor_day, chosen.previous_plan, chosen.has_balances,
            chosen.spent_messages,
            chosen.transaction_id, chosen.plan, chosen.cycle, chosen.time_zone, chosen.allowance, chosen.enforced,
            chosen.window_messages, chosen.window_seconds, chosen.started_at, chosen.ends_at, chosen.renews,
            chosen.state, chosen.denial_reason, chosen.counts_at, chosen.next_change_at,
            case when chosen.period_started_at is not null then headroom.paid_period(
                chosen.cycle, chosen.period_started_at, chosen.period_ends_at, chosen.period_day, chosen.expires_at,
                chosen.counts_at
            ) end as paid
        from chosen
        order by chosen.ordinal
    ),
    clocked as (
        select
            paid.*,
            coalesce(
                (paid.paid[1] at time zone 'UTC')::date,
                headroom.period_day(paid.cycle, paid.counts_at, paid.anchor_day, paid.time_zone)
            ) as clock_day
        from paid
        order by paid.ordinal
    ),
    compared as (
        select
            clocked.*,
            -- This is rarely true.
            case when clocked.clock_day is null then false else coalesce((
                select true from public.message_usage as usage
                where usage.bucket = p_bucket and usage.user_id = clocked.user_id
                    and usage.billing_period >= headroom.period_label(clocked.cycle, clocked.clock_day)
                    and (
                        usage.billing_period <> headroom.period_label(clocked.cycle, clocked.clock_day)
                        or usage.started_at <> clocked.paid[1]
                    )
                    and headroom.label_cycle(usage.billing_period) = clocked.cycle
                limit 1
            ), false) end as has_other_rows
        from clocked
        order by clocked.ordinal
    ),
    opened as (
        select
            compared.*,
            case
                when compared.has_other_rows and compared.paid[1] is null
                    then headroom.open_day(compared.user_id, compared.cycle, compared.clock_day, p_at)
                else compared.clock_day
            end as day
        from compared
        order by compared.ordinal
    ),
    bounded as (
        select
            opened.*,
            coalesce(
                opened.paid[1],
                headroom.period_start(opened.cycle, opened.day, opened.anchor_day, opened.time_zone)
            ) as begins_at,
            -- If a renewal is awaited, the paid period is over already.
            greatest(
                coalesce(opened.paid[2], headroom.period_start(
                    opened.cycle, headroom.next_period_day(opened.cycle, opened.day), opened.anchor_day,
                    opened.time_zone
                )),
                case when opened.day is not null and opened.counts_at < p_at then opened.ends_at end
            ) as resets_at,
            headroom.period_label(opened.cycle, opened.day) as label
        from opened
    )
    select
        bounded.user_id, bounded.transaction_id is not null, bounded.plan, bounded.cycle, bounded.state,
        bounded.denial_reason,
        case
            when bounded.has_other_rows then headroom.row_label(
                bounded.user_id, bounded.cycle, bounded.label, bounded.paid[1], bounded.paid[2]
            )
            else coalesce(bounded.label, bounded.plan)
        end,
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
            when bounded.has_other_rows
                then headroom.later_messages(bounded.user_id, bounded.cycle, bounded.clock_day, p_at)
        end,
        bounded.enforced, bounded.window_messages, bounded.window_seconds, coalesce(bounded.has_balances, false)
    from bounded
    order by bounded.ordinal;
    get diagnostics v_rows = row_count;
    -- "inputs" has no row for a user whose plan is missing.
    if v_rows < cardinality(p_users) then
        raise exception 'headroom.plans has no plan named %, which users without a subscription are on',
            v_starting_plan
            using hint = 'Insert it, or start the service with another --unknown-users.';
    end if;
end
$$;
