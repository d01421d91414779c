-- Returns what headroom.plan_record needs of a user's entitlement at p_at: has_subscription, plan, cycle, state,
-- started_at and expires_at. The rest is null, and so is all of it without a subscription. It chooses the subscription
-- as headroom.entitlements does, in less than half of the time, because it derives no period.
create or replace function headroom.chosen_plan(p_user_id uuid, p_at timestamptz) returns headroom.entitlement
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_leeway constant interval := headroom.renewal_leeway();
    v_result headroom.entitlement;
begin
    select
        true, judged.plan, judged.cycle, judged.state, coalesce(judged.started_at, p_at), judged.ends_at
    into
        v_result.has_subscription, v_result.plan, v_result.cycle, v_result.state, v_result.started_at,
        v_result.expires_at
    from (
        select
            subscription.original_transaction_id as transaction_id, plans.plan, plans.cycle, plans.allowance,
            plans.enforced, judgement.started_at, judgement.ends_at, judgement.state, judgement.denial_reason,
            max(judgement.bought_until) over () as last_bought_until
        from headroom.subscriptions as subscription
        join headroom.plans as plans on plans.plan = subscription.plan
        cross join lateral headroom.judged_subscription(
            p_at, 'deny', subscription.original_transaction_id, plans.plan, plans.cycle, plans.trial_days,
            headroom.trial_start(
                p_user_id, subscription.original_transaction_id, plans.plan, subscription.started_at, p_at
            ),
            subscription.expires_at, subscription.grace_until, subscription.billing_issue_at,
            subscription.unsubscribed_at, subscription.revoked_at, subscription.renews, null, null, v_leeway
        ) as judgement
        where subscription.bucket = headroom.bucket_of(p_user_id) and subscription.user_id = p_user_id
    ) as judged
    order by
        headroom.subscription_rank(
            judged.plan, judged.cycle, judged.allowance, judged.enforced, judged.state, judged.denial_reason,
            judged.started_at, judged.last_bought_until
        ),
        coalesce(judged.ends_at, 'infinity') desc, judged.transaction_id desc
    limit 1;
    return v_result;
end
$$;
