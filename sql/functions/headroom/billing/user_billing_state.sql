-- Returns the state of a user from which billing events are applied, as JSON: the plan that an operator set, the trial
-- that a message or an operator started, and the subscriptions; null if the user has no row in headroom.subscribers.
-- p_trials: the enforced plans that are trials.
create or replace function headroom.user_billing_state(p_user_id uuid, p_trials text[]) returns json
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_trial_used_up_at timestamptz;
begin
    -- Few users still have the row of a trial.
    if exists (
        select from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
            and usage.billing_period = any(p_trials)
    ) then
        -- Held messages count as used. A message that was counted while this transaction waited for a lock has a later
        -- time than this transaction.
        select min(least(usage.updated_at, headroom.now())) into v_trial_used_up_at
        from public.message_usage as usage
        join headroom.plans as plans on plans.plan = usage.billing_period
        where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
            and usage.billing_period = any(p_trials)
            and usage.message_count::bigint + headroom.held_messages(
                p_user_id, usage.billing_period, usage.held
            ) >= headroom.effective_limit(
                usage.plan, usage.plan_limit, usage."limit" - coalesce(usage.extra, 0), usage.granted, plans.allowance
            );
    end if;
    return (
        select row_to_json(billing_state) from (
            select
                subscriber.user_id as "user", subscriber.operator_set_at, subscriber.operator_anchor_day,
                subscriber.operator_previous_plan, subscriber.trial_started_at, subscriber.trial_ends_at,
                subscriber.trial_used_up_at, v_trial_used_up_at as present_trial_used_up_at, subscriber.anchor_day,
                subscriber.previous_plan, subscriber.store_trial_started_at,
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
