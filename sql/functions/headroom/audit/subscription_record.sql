-- Returns what the audit log records of a user's plan and of one subscription. Null if the user has neither.
-- p_subscription: a row of headroom.subscriptions as JSON, or null.
create or replace function headroom.subscription_record(
    p_entitlement headroom.entitlement, p_anchor_day integer, p_previous_plan text, p_subscription jsonb
) returns jsonb
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_plan constant jsonb := headroom.plan_record(p_entitlement, p_anchor_day, p_previous_plan);
    v_subscription constant jsonb := case when p_subscription is not null then (
        select jsonb_strip_nulls(jsonb_build_object(
            'transaction', subscription.original_transaction_id,
            'bought', subscription.plan,
            'product', subscription.product,
            'paid_until', headroom.instant_text(subscription.expires_at),
            'grace_until', headroom.instant_text(subscription.grace_until),
            'billing_issue', headroom.instant_text(subscription.billing_issue_at),
            'unsubscribed', headroom.instant_text(subscription.unsubscribed_at),
            'revoked', headroom.instant_text(subscription.revoked_at),
            'next_plan', subscription.next_plan,
            'next_product', subscription.next_product
        ))
        from jsonb_populate_record(null::headroom.subscriptions, p_subscription) as subscription
    ) end;
begin
    return case when v_plan is null then v_subscription else v_plan || coalesce(v_subscription, '{}') end;
end
$$;
