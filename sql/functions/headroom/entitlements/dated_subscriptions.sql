-- Returns what the entitlements of these users at p_at follow from: a row for each subscription, and one for a user
-- without any, with its plan, its start, and when its access ends (null: never). All users are of one bucket. There is
-- no row for a missing plan. Raises HR006 if a row has a value that a check constraint forbids.
--
-- PostgreSQL inlines the function. Each lateral subquery has a limit or an offset, so that it looks each user up in an
-- index: as a join, it could become a walk over the whole index (docs/decisions/0003-lock-order.md).
create or replace function headroom.dated_subscriptions(
    p_bucket smallint, p_users uuid[], p_at timestamptz, p_unknown_users_policy text
) returns table (
    ordinal bigint, user_id uuid, anchor_day integer, previous_plan text, spent_messages bigint, transaction_id text,
    plan text, cycle text, time_zone text, allowance integer, enforced boolean, window_messages integer,
    window_seconds integer, started_at timestamptz, ends_at timestamptz, expires_at timestamptz,
    grace_until timestamptz, billing_issue_at timestamptz, unsubscribed_at timestamptz, revoked_at timestamptz,
    renews boolean
)
    language plpgsql stable set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
    return query
    select
        request.ordinal, request.user_id, coalesce(subscriber.anchor_day, 1)::integer as anchor_day,
        subscriber.previous_plan, spent.messages, subscription.original_transaction_id, plans.plan, plans.cycle,
        coalesce(plans.time_zone, 'UTC') as time_zone, plans.allowance, plans.enforced, plans.window_messages,
        plans.window_seconds, dates.started_at,
        case
            when plans.cycle = 'trial' then coalesce(
                case
                    when subscription.plan is null then coalesce(subscriber.trial_ends_at, spent.trial_ends_at)
                    else subscription.expires_at
                end,
                headroom.at_most_latest(dates.started_at + make_interval(hours => 24 * plans.trial_days))
            )
            -- The date of the store, or 16 days after expiry if the store gives none.
            when subscription.billing_issue_at is not null then greatest(
                subscription.expires_at,
                coalesce(
                    subscription.grace_until, headroom.at_most_latest(subscription.expires_at + interval '16 days')
                )
            )
            else subscription.expires_at
        end as ends_at,
        subscription.expires_at::timestamptz, subscription.grace_until::timestamptz,
        subscription.billing_issue_at::timestamptz, subscription.unsubscribed_at::timestamptz,
        subscription.revoked_at::timestamptz, subscription.renews
    from unnest(p_users) with ordinality as request (user_id, ordinal)
    left join lateral (
        select
            one.user_id, one.anchor_day, one.previous_plan, one.trial_ends_at,
            least(one.trial_started_at, one.store_trial_started_at) as trial_started_at
        from headroom.subscribers as one
        where one.bucket = p_bucket and one.user_id = request.user_id
        limit 1
    ) as subscriber on true
    -- The spent trials of a forgotten user, else null.
    cross join lateral (
        select
            min(one.trial_started_at) as trial_started_at, min(one.trial_ends_at) as trial_ends_at,
            sum(one.messages) filter (where one.plan = 'trial') as messages
        from headroom.spent_trials as one
        where subscriber.user_id is null and p_unknown_users_policy = 'trial'
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
    -- Without a subscription: a trial that starts now, the free plan, or nothing.
    cross join lateral (
        select one.*
        from headroom.plans as one
        where one.plan
            = coalesce(subscription.plan, case p_unknown_users_policy when 'trial' then 'trial' else 'free' end)
        limit 1
    ) as plans
    cross join lateral (
        select case
            when subscription.plan is null then coalesce(subscriber.trial_started_at, spent.trial_started_at, p_at)
            -- The message was counted while the clock was ahead (headroom.correct_clock_jump). Without such a usage
            -- row an operator has set that start.
            when subscription.original_transaction_id = 'first message'
                and subscription.started_at > p_at + interval '1 hour'
                and headroom.is_dated_ahead(request.user_id, subscription.plan, p_at)
                then p_at
            else subscription.started_at
        end as started_at
    ) as dates
    -- Values that the constraints forbid. Null is valid.
    where (
        least(
            subscriber.trial_started_at, subscriber.trial_ends_at, spent.trial_started_at, spent.trial_ends_at,
            subscription.started_at, subscription.expires_at, subscription.grace_until, subscription.billing_issue_at,
            subscription.unsubscribed_at, subscription.revoked_at
        ) < '2000-01-01T00:00:00Z'
        or greatest(
            subscriber.trial_started_at, subscriber.trial_ends_at, spent.trial_started_at, spent.trial_ends_at,
            subscription.started_at, subscription.expires_at, subscription.grace_until, subscription.billing_issue_at,
            subscription.unsubscribed_at, subscription.revoked_at
        ) >= '10000-01-01T00:00:00Z'
        or subscriber.anchor_day not between 1 and 31
        or least(spent.messages, plans.allowance, plans.gentle_percent, plans.prominent_percent) < 0
        or greatest(plans.gentle_percent, plans.prominent_percent) > 100
        or plans.cycle = 'trial' and coalesce(plans.trial_days, 0) not between 1 and 3650
    ) is not true
    or headroom.raise_invalid_inputs(request.user_id, p_unknown_users_policy)
    -- Also keeps the dates from being computed for each use, and before the values are checked.
    order by request.ordinal;
end
$$;
