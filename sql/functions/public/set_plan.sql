-- Sets a user's plan, from the next message on. The count of the period stays, and a period without a row gets one. A
-- parameter that is null clears the old value, except the anchor day and the start of a trial, which stay. Returns the
-- user's usage under the new plan. Locks the subscriber.
create or replace function public.set_plan(
    p_user_id uuid,
    p_plan text,
    p_state text default null,
    p_started timestamptz default null,
    p_expires timestamptz default null,
    p_grace_until timestamptz default null,
    p_anchor integer default null
) returns headroom.answer
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_plan headroom.plans;
    v_state text;
    v_subscriber headroom.subscribers;
    v_before headroom.entitlement;
    v_entitlement headroom.entitlement;
    v_record jsonb;
    v_previous_plan text;
    v_subscription record;
begin
    if p_user_id is null or p_plan is null then
        raise exception 'p_user_id and p_plan must not be null' using errcode = 'null_value_not_allowed';
    elsif p_anchor not between 1 and 31 then
        raise exception 'p_anchor must be a day of the month, 1 to 31' using errcode = 'invalid_parameter_value';
    elsif not (headroom.is_instant(p_started) and headroom.is_instant(p_expires)
        and headroom.is_instant(p_grace_until)) then
        raise exception 'p_started, p_expires and p_grace_until must be in the years 2000 to 9999'
            using errcode = 'invalid_parameter_value', hint = 'Leave one out for never.';
    end if;
    perform headroom.check_plan(p_plan);
    select * into strict v_plan from headroom.plans where plan = p_plan;
    v_state := coalesce(p_state,
        case v_plan.cycle when 'trial' then 'trial' when 'lifetime' then 'free' else 'active' end);
    if not v_state = any(case v_plan.cycle
        when 'trial' then array['trial', 'expired', 'revoked']
        when 'lifetime' then array['free', 'expired', 'revoked']
        else array['active', 'cancelled', 'grace_period', 'billing_retry', 'expired', 'revoked']
    end) then
        raise exception 'state % does not fit plan %', quote_literal(v_state), quote_literal(p_plan)
            using errcode = 'invalid_parameter_value', hint = case v_plan.cycle
                when 'trial' then 'A trial is trial, expired or revoked.'
                when 'lifetime' then 'A plan that never resets is free, expired or revoked.'
                else 'Any other plan is active, cancelled, grace_period, billing_retry, expired or revoked.'
            end;
    end if;

    perform headroom.lock_subscriber(p_user_id);
    select * into strict v_subscriber from headroom.subscribers
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id;
    v_before := headroom.entitlement(p_user_id, v_now, 'deny');
    v_record := headroom.plan_record(v_before, v_subscriber.anchor_day, v_subscriber.previous_plan);
    v_previous_plan := case
        when v_before.has_subscription and headroom.is_periodic(v_before.cycle) and v_before.plan <> p_plan
            then v_before.plan
        else v_subscriber.previous_plan
    end;
    select * into strict v_subscription from headroom.operator_subscription(
        v_plan.cycle, v_plan.time_zone, v_state, p_started, p_expires, p_grace_until,
        coalesce(p_anchor, v_subscriber.anchor_day),
        least(v_subscriber.trial_started_at, v_subscriber.store_trial_started_at), v_now
    );
    update headroom.subscribers
    set operator_set_at = v_now,
        anchor_day = coalesce(p_anchor, anchor_day),
        operator_anchor_day = coalesce(p_anchor, anchor_day),
        trial_started_at = case v_plan.cycle when 'trial' then v_subscription.started_at else trial_started_at end,
        trial_ends_at = case when v_plan.cycle <> 'trial' then trial_ends_at end,
        previous_plan = v_previous_plan,
        operator_previous_plan = v_previous_plan
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id
    returning * into v_subscriber;
    delete from headroom.subscriptions where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id;
    insert into headroom.subscriptions (
        bucket, user_id, original_transaction_id, plan, started_at, expires_at, grace_until, billing_issue_at,
        unsubscribed_at, revoked_at
    ) values (
        headroom.bucket_of(p_user_id), p_user_id, 'operator', p_plan, v_subscription.started_at,
        v_subscription.expires_at, v_subscription.grace_until, v_subscription.billing_issue_at,
        v_subscription.unsubscribed_at, v_subscription.revoked_at
    );
    v_entitlement := headroom.entitlement(p_user_id, v_now, 'deny');
    perform headroom.apply_entitlement(p_user_id, v_entitlement);
    perform headroom.record_change(
        p_user_id, null, 'plan', v_record,
        headroom.plan_record(v_entitlement, v_subscriber.anchor_day, v_subscriber.previous_plan)
    );
    return headroom.format_answer(p_user_id, headroom.read_usage_snapshot(p_user_id, 'deny'), 0);
end
$$;
alter function public.set_plan(uuid, text, text, timestamptz, timestamptz, timestamptz, integer)
owner to headroom_owner;
