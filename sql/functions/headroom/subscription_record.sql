-- What the audit log keeps of a user, whose terms are p_terms, and of one subscription. Null where there is neither.
create or replace function headroom.subscription_record(
    p_user_id uuid, p_transaction text, p_terms headroom.terms
) returns jsonb
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_subscriber headroom.subscribers;
    v_subscription headroom.subscriptions;
begin
    select * into v_subscriber from headroom.subscribers
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id;
    select * into v_subscription from headroom.subscriptions
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and original_transaction_id = p_transaction;
    if p_terms.is_known is not true and v_subscription.user_id is null then
        return null;
    end if;
    return coalesce(headroom.plan_record(p_terms, v_subscriber.anchor_day, v_subscriber.previous_plan), '{}')
        || jsonb_strip_nulls(jsonb_build_object(
        'transaction', v_subscription.original_transaction_id,
        'bought', v_subscription.plan,
        'product', v_subscription.product,
        'paid_until', headroom.instant_text(v_subscription.expires_at),
        'grace_until', headroom.instant_text(v_subscription.grace_until),
        'billing_issue', headroom.instant_text(v_subscription.billing_issue_at),
        'unsubscribed', headroom.instant_text(v_subscription.unsubscribed_at),
        'revoked', headroom.instant_text(v_subscription.revoked_at),
        'next_plan', v_subscription.next_plan,
        'next_product', v_subscription.next_product
    ));
end
$$;
