-- Returns the state of a user from which billing events are applied, as JSON: the plan that an operator set, the trial
-- that a message or an operator started, and the subscriptions; null if the user has no row in headroom.subscribers.
create or replace function headroom.user_billing_state(p_user_id uuid) returns json
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select row_to_json(billing_state) from (
            select
                subscriber.user_id as "user", subscriber.operator_set_at, subscriber.operator_anchor_day,
                subscriber.operator_previous_plan, subscriber.trial_started_at,
                case when subscriber.trial_started_at is not null then coalesce(
                    subscriber.trial_ends_at,
                    (
                        select subscriber.trial_started_at + make_interval(hours => 24 * plans.trial_days)
                        from headroom.plans as plans where plans.plan = 'trial'
                    )
                ) end as trial_ends_at,
                subscriber.trial_used_up_at,
                -- Held messages count as used. A message that was counted while this transaction waited for a lock has
                -- a later time than this transaction.
                (
                    select min(least(usage.updated_at, headroom.now()))
                    from public.message_usage as usage
                    join headroom.plans as plans
                        on plans.plan = usage.billing_period and plans.cycle = 'trial' and plans.enforced
                    where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
                        and usage.message_count::bigint + headroom.held_messages(
                            p_user_id, usage.billing_period, usage.held
                        ) >= headroom.effective_limit(
                            usage.plan, usage.plan_limit, usage."limit", usage.granted, plans.allowance
                        )
                ) as present_trial_used_up_at,
                subscriber.anchor_day, subscriber.previous_plan, subscriber.store_trial_started_at,
                (
                    select subscription.plan from headroom.subscriptions as subscription
                    join headroom.plans as plans on plans.plan = subscription.plan and headroom.is_periodic(plans.cycle)
                    where subscription.bucket = headroom.bucket_of(p_user_id) and subscription.user_id = p_user_id
                        and subscription.original_transaction_id = 'operator'
                ) as operator_plan,
                (
                    select json_agg(all_subscriptions) from (
                        select * from headroom.subscriptions
                        where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id
                    ) as all_subscriptions
                ) as subscriptions
            from headroom.subscribers as subscriber
            where subscriber.bucket = headroom.bucket_of(p_user_id) and subscriber.user_id = p_user_id
        ) as billing_state
    );
end
$$;
