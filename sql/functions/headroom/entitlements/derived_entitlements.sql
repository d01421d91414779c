-- Shows what each user without a usable row (headroom.is_usable) may send now, derived as headroom.entitlements does it
-- for some users. The columns about the plan are null for a user with an invalid value, without a plan, or with a plan
-- whose time zone PostgreSQL does not know any more, so that a report of all users does not fail.
--
-- For one user, a condition on bucket and user_id is applied to each table. newest_period is the latest that may be a
-- label of a month, week or day, which begin with a digit. A function that reads a user's rows is called only for the
-- rare user for whom it may matter. ORDER BY sorts nothing: it keeps the columns of a step from being computed for each
-- use (headroom.judged_usage_rows).
create or replace view headroom.derived_entitlements with (security_barrier) as
with constants as (
    select
        headroom.now() as now,
        -- A row that is dated later was written while the clock was ahead.
        headroom.now() + interval '1 hour' as latest,
        headroom.renewal_leeway() as leeway,
        revised.revision, policies.policy,
        case policies.policy when 'trial' then 'trial' else 'free' end as starting_plan,
        array(
            select plans.plan from headroom.plans as plans
            where plans.time_zone is not null and not headroom.is_time_zone(plans.time_zone)
        ) as lost_plans
    from headroom.plan_revision as revised
    cross join (select headroom.unknown_users_policy() as policy) as policies
),
users as (
    select
        one.bucket, one.user_id,
        max(one.billing_period) filter (where ascii(one.billing_period) between 48 and 57) as newest_period,
        coalesce(bool_or(one.window_ends_at > (select constants.now from constants)), false) as may_have_window
    from (
        -- A subscriber in another bucket would not be found here (headroom.raise_discarded_row).
        select
            subscriber.bucket, subscriber.user_id, null::text as billing_period, null::timestamptz as window_ends_at,
            false as is_usable
        from headroom.subscribers as subscriber
        where subscriber.bucket = headroom.bucket_of(subscriber.user_id)
        union all
        select
            usage.bucket, usage.user_id, usage.billing_period, usage.window_ends_at,
            usage.usable_until > (select constants.now from constants)
            and usage.updated_at <= (select constants.latest from constants)
            and usage.plan_revision = (select constants.revision from constants) as is_usable
        from public.message_usage as usage
    ) as one
    group by one.bucket, one.user_id
    having not bool_or(one.is_usable)
),
inputs as (
    select
        users.bucket, users.user_id, users.newest_period, users.may_have_window,
        (select constants.now from constants) as now, (select constants.policy from constants) as policy,
        (select constants.leeway from constants) as leeway, coalesce(subscriber.anchor_day, 1)::integer as anchor_day,
        coalesce(subscriber.has_balances, false) as has_balances,
        sum(spent.messages) filter (
            where spent.plan = (select constants.starting_plan from constants)
        ) over same_user as spent_messages,
        subscription.original_transaction_id as transaction_id, plans.plan, plans.cycle,
        plans.allowance, plans.enforced, plans.trial_days,
        subscription.started_at as subscribed_at, subscription.expires_at, subscription.grace_until,
        subscription.billing_issue_at, subscription.unsubscribed_at, subscription.revoked_at,
        subscription.renews as is_renewed, subscription.period_started_at, subscription.period_ends_at,
        subscription.period_day,
        coalesce(
            least(subscriber.trial_started_at, subscriber.store_trial_started_at),
            min(spent.trial_started_at) filter (
                where (select constants.starting_plan from constants) = 'trial'
            ) over same_user
        ) as trial_started_at,
        coalesce(
            subscriber.trial_ends_at,
            min(spent.trial_ends_at) filter (
                where (select constants.starting_plan from constants) = 'trial'
            ) over same_user
        ) as trial_ends_at
    from users
    left join headroom.subscribers as subscriber
        on subscriber.bucket = users.bucket and subscriber.user_id = users.user_id
    left join headroom.subscriptions as subscription
        on subscription.bucket = users.bucket and subscription.user_id = users.user_id
    -- A forgotten user has a row for each plan that was used. Citus refuses a lateral subquery here.
    left join headroom.spent_trials as spent
        on spent.bucket = users.bucket and (select constants.policy from constants) <> 'deny'
            and spent.digest = case
                when subscriber.user_id is null then headroom.keyed_digest(
                    users.user_id,
                    (select secrets.inner_key from headroom.secrets as secrets where secrets.name = 'spent trials'),
                    (select secrets.outer_key from headroom.secrets as secrets where secrets.name = 'spent trials')
                )
            end
    left join headroom.plans as plans
        on plans.plan = coalesce(subscription.plan, (select constants.starting_plan from constants))
            and plans.plan <> all((select constants.lost_plans from constants)::text[])
            and headroom.are_valid_inputs(
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
    window same_user as (partition by users.bucket, users.user_id)
    order by null::boolean
),
judged as (
    select inputs.*, judgement.*, max(judgement.bought_until) over same_user as last_bought_until
    from inputs
    left join lateral headroom.judged_subscription(
        inputs.now, inputs.policy, inputs.transaction_id, inputs.plan, inputs.cycle, inputs.trial_days,
        headroom.trial_start(
            inputs.user_id, inputs.transaction_id, inputs.plan, inputs.subscribed_at, inputs.now
        ),
        inputs.expires_at, inputs.grace_until, inputs.billing_issue_at, inputs.unsubscribed_at, inputs.revoked_at,
        inputs.is_renewed, inputs.trial_started_at, inputs.trial_ends_at, inputs.leeway
    ) as judgement on true
    window same_user as (partition by inputs.bucket, inputs.user_id)
),
ranked as (
    select
        judged.*,
        row_number() over (
            partition by judged.bucket, judged.user_id
            order by
                -- An invalid subscription comes first.
                judged.plan is not null,
                headroom.subscription_rank(
                    judged.plan, judged.cycle, judged.allowance, judged.enforced, judged.state, judged.denial_reason,
                    judged.started_at, judged.last_bought_until
                ),
                coalesce(judged.ends_at, 'infinity') desc, judged.transaction_id desc
        ) as place
    from judged
),
chosen as (
    select
        ranked.*, coalesce(plans.time_zone, 'UTC') as time_zone, plans.window_messages, plans.window_seconds,
        plans.gentle_percent, plans.prominent_percent,
        case when ranked.period_started_at is not null then headroom.paid_period(
            ranked.cycle, ranked.period_started_at, ranked.period_ends_at, ranked.period_day, ranked.expires_at,
            ranked.counts_at
        ) end as paid
    from ranked
    left join headroom.plans as plans on plans.plan = ranked.plan
    where ranked.place = 1
    order by null::boolean
),
clocked as (
    select
        chosen.*,
        coalesce(
            (chosen.paid[1] at time zone 'UTC')::date,
            headroom.period_day(chosen.cycle, chosen.counts_at, chosen.anchor_day, chosen.time_zone)
        ) as clock_day
    from chosen
    order by null::boolean
),
opened as (
    select
        clocked.*,
        clocked.newest_period > headroom.period_label(clocked.cycle, clocked.clock_day)
        or clocked.paid[1] is not null
        and clocked.newest_period = headroom.period_label(clocked.cycle, clocked.clock_day) as may_have_other_rows,
        case
            when clocked.newest_period > headroom.period_label(clocked.cycle, clocked.clock_day)
                and clocked.paid[1] is null
                then headroom.open_day(clocked.user_id, clocked.cycle, clocked.clock_day, clocked.now)
            else clocked.clock_day
        end as day,
        case
            when clocked.clock_day is null then clocked.spent_messages
            when clocked.newest_period > headroom.period_label(
                clocked.cycle, headroom.next_period_day(clocked.cycle, clocked.clock_day)
            ) then headroom.later_messages(
                clocked.user_id, clocked.cycle, clocked.clock_day, clocked.now
            )
        end as other_messages
    from clocked
    order by null::boolean
)
select
    opened.bucket, opened.user_id, opened.may_have_window, opened.transaction_id is not null as has_subscription,
    opened.plan, opened.cycle, opened.state, opened.denial_reason,
    case
        when opened.may_have_other_rows then headroom.row_label(
            opened.user_id, opened.cycle, headroom.period_label(opened.cycle, opened.day), opened.paid[1],
            opened.paid[2]
        )
        else coalesce(headroom.period_label(opened.cycle, opened.day), opened.plan)
    end as billing_period,
    case when opened.denial_reason = 'no_subscription' then 0 else opened.allowance end as allowance,
    case
        when opened.plan is not null then coalesce(
            opened.paid[1], headroom.period_start(opened.cycle, opened.day, opened.anchor_day, opened.time_zone),
            opened.started_at, opened.now
        )
    end as started_at,
    greatest(
        coalesce(opened.paid[2], headroom.period_start(
            opened.cycle, headroom.next_period_day(opened.cycle, opened.day), opened.anchor_day, opened.time_zone
        )),
        case when opened.day is not null and opened.counts_at < opened.now then opened.ends_at end
    ) as resets_at,
    opened.ends_at as expires_at, opened.other_messages as spent_messages, opened.gentle_percent,
    opened.prominent_percent, opened.enforced, opened.window_messages, opened.window_seconds, opened.has_balances
from opened
order by null::boolean;
