-- Shows usage rows with their standing: how much of headroom.usage_rows follows without headroom.derived_entitlements,
-- which takes five times as long for one user as a look at the user's subscriptions.
--
-- A current row has the period that an answer to its user shows. The values of standing are
-- usable: current, and the next message would count in the row as it is;
-- edited: current, but the numbers of the plan have changed since the last message;
-- ended_trial: current, and the user may not send;
-- over: not current;
-- without_plan: not current, but older clients count in it;
-- denied: as without_plan, but users without a plan may not send;
-- unknown: only headroom.derived_entitlements can tell.
--
-- has_ended: whether the columns of the row alone say that it is over.
--
-- The view is a security barrier, so that PostgreSQL computes each column once: the expressions of another view would
-- be copied to each place in which a column is used. Citus replaces a view by its query, where the ORDER BY has the
-- same effect; it sorts nothing (docs/decisions/0041-sql-that-citus-can-plan.md).
create or replace view headroom.judged_usage_rows with (security_barrier) as
with constants as (
    select
        revised.revision,
        headroom.now() as now,
        -- A period that has ended may go on counting until its renewal is reported.
        headroom.now() - headroom.renewal_leeway() as latest_reset,
        -- A row that is dated later was written while the clock was ahead.
        headroom.now() + interval '1 hour' as latest,
        -- An edit of the plan's time zone moves the end of a day or a week by less than two days.
        headroom.now() - interval '2 days' as latest_end,
        to_char(headroom.now() at time zone 'UTC', 'YYYY-MM') as month,
        -- These are the calendar's month, week and day (UTC).
        array(
            select headroom.period_label(cycles.cycle, (headroom.now() at time zone 'UTC')::date)
            from unnest('{monthly,weekly,daily}'::text[]) as cycles (cycle)
        ) as calendar_labels,
        extract(day from headroom.now() at time zone 'UTC')::integer as day,
        -- These are all labels that a current row may have. They include those of the periods before, because of an
        -- anchor day or a time zone, and of the periods after, because of a time zone or if the clock was set back.
        array(
            select to_char(headroom.now() at time zone 'UTC' + ahead * interval '1 month', 'YYYY-MM')
            from generate_series(-1, 1) as ahead
            union all
            select plans.plan from headroom.plans as plans where not headroom.is_periodic(plans.cycle)
            union all
            select headroom.period_label('weekly', (headroom.now() at time zone 'UTC')::date + 7 * ahead)
            from generate_series(-1, 2) as ahead
            union all
            select headroom.period_label('daily', (headroom.now() at time zone 'UTC')::date + ahead)
            from generate_series(-1, 2) as ahead
        ) as labels,
        array(select plans.plan from headroom.plans as plans where plans.cycle = 'trial') as trials,
        -- This is the plan of users without a subscription.
        starting.cycle as starting_cycle,
        coalesce(
            headroom.period_label(
                starting.cycle, (headroom.now() at time zone coalesce(starting.time_zone, 'UTC'))::date
            ),
            starting.plan
        ) as starting_period,
        policies.policy = 'deny' or starting.allowance = 0 and starting.enforced as starts_denied
    from headroom.plan_revision as revised
    cross join (select headroom.unknown_users_policy() as policy) as policies
    left join headroom.plans as starting
        on starting.plan = case policies.policy when 'trial' then 'trial' else 'free' end
)
select
    usage.bucket, usage.user_id, usage.billing_period, usage.message_count, usage.held, usage.granted, usage."limit",
    usage.extra, usage.usable_count, usage.plan_limit, usage.plan, usage.state, usage.started_at, usage.resets_at,
    usage.expires_at, usage.updated_at,
    usage.ctid, plans.allowance, plans.gentle_percent, plans.prominent_percent, plans.enforced,
    coalesce(
        usage.resets_at <= case
            when usage.renews then (select constants.latest_reset from constants)
            else (select constants.now from constants)
        end and usage.usable_until > '-infinity'
        and (
            usage.plan_revision = (select constants.revision from constants)
            or usage.resets_at <= (select constants.latest_end from constants)
            or length(split_part(usage.billing_period, '.', 1)) = 7
        ),
        false
    )
    or split_part(usage.billing_period, '.', 1) <> all((select constants.labels from constants)::text[])
    -- An extension moves the end of a period that was paid.
    and (usage.resets_at > (select constants.latest_reset from constants)) is not true as has_ended,
    -- This is a column by itself, because a condition on it is evaluated before the standing.
    usage.usable_until > (select constants.now from constants)
    and usage.plan_revision = (select constants.revision from constants)
    and usage.updated_at <= (select constants.latest from constants) as is_usable,
    case
        when usage.usable_until > (select constants.now from constants)
            and usage.plan_revision = (select constants.revision from constants)
            and usage.updated_at <= (select constants.latest from constants)
            then 'usable'
        when usage.resets_at <= case
            when usage.renews then (select constants.latest_reset from constants)
            else (select constants.now from constants)
        end and usage.usable_until > '-infinity'
            and (
                usage.plan_revision = (select constants.revision from constants)
                or usage.resets_at <= (select constants.latest_end from constants)
                or length(split_part(usage.billing_period, '.', 1)) = 7
            )
            or split_part(usage.billing_period, '.', 1) <> all((select constants.labels from constants)::text[])
            and (usage.resets_at > (select constants.latest_reset from constants)) is not true
            then 'over'
        else (
            select case
                when usage.extra is not null then 'unknown'
                -- Older clients count users without a plan in the calendar month, or in its week or day, until another
                -- row is current.
                when count(*) = 0
                    and headroom.label_cycle(usage.billing_period) <> (select constants.starting_cycle from constants)
                    then case
                        when usage.plan is not null
                            or usage.billing_period <> all((select constants.calendar_labels from constants)::text[])
                            or exists (
                                select from public.message_usage as other
                                where other.bucket = usage.bucket and other.user_id = usage.user_id
                                    and (
                                        other.billing_period = (select constants.starting_period from constants)
                                        or other.billing_period
                                            = any((select constants.calendar_labels from constants)::text[])
                                        and (other.updated_at, other.billing_period)
                                            > (usage.updated_at, usage.billing_period)
                                    )
                            )
                            then 'over'
                        when (select constants.starts_denied from constants) then 'denied'
                        else 'without_plan'
                    end
                when count(*) = 0 then 'unknown'
                -- From the anchor day on, this month's period is open. A period that was paid has another day.
                when usage.billing_period < (select constants.month from constants)
                    and headroom.label_cycle(usage.billing_period) = 'monthly' and (
                        select subscriber.anchor_day from headroom.subscribers as subscriber
                        where subscriber.bucket = usage.bucket and subscriber.user_id = usage.user_id
                    ) <= (select constants.day from constants)
                    and bool_and(subscription.period_started_at is null)
                    and (usage.renews and usage.resets_at > (select constants.latest_reset from constants)) is not true
                    then 'over'
                when plans.cycle = 'trial' and usage.plan = usage.billing_period and not bool_or(
                        subscription.plan = usage.plan
                        and coalesce(subscription.revoked_at > (select constants.now from constants), true)
                        and coalesce(
                            subscription.expires_at,
                            subscription.started_at + make_interval(hours => 24 * plans.trial_days),
                            'infinity'
                        ) > (select constants.now from constants)
                    )
                    then case
                        -- Anything else that was bought applies instead of the trial, even if it has ended, too.
                        when bool_or(
                                subscription.plan <> 'free'
                                and subscription.plan <> all((select constants.trials from constants)::text[])
                            )
                            then 'over'
                        when bool_and(
                                subscription.plan = usage.plan and subscription.revoked_at is null
                                and subscription.unsubscribed_at is null
                            )
                            then 'ended_trial'
                        else 'unknown'
                    end
                when count(*) = 1 and min(subscription.plan) = usage.plan and plans.cycle = 'monthly'
                    and headroom.label_cycle(usage.billing_period) = 'monthly' and usage.resets_at is not null
                    and usage.usable_until > (select constants.now from constants)
                    and usage.updated_at <= (select constants.latest from constants)
                    and plans.window_seconds is null
                    then 'edited'
                else 'unknown'
            end
            from headroom.subscriptions as subscription
            where subscription.bucket = usage.bucket and subscription.user_id = usage.user_id
        )
    end as standing,
    headroom.taken_percent(usage.message_count::bigint + usage.held, usage."limit") as percent,
    headroom.taken_percent(case
        when usage.window_ends_at > (select constants.now from constants)
            then usage.window_count::bigint + usage.window_held
        else 0
    end, usage.window_limit) as window_percent
from public.message_usage as usage
left join headroom.plans as plans on plans.plan = usage.plan
order by null::boolean;
