-- What the audit log keeps when an event changes something: what the user has now, and the inputs of the transaction.
create or replace function headroom.store_event_record(
    p_terms headroom.terms, p_subscriber headroom.subscribers, p_subscription headroom.subscriptions
) returns jsonb
    language sql stable
    return case when (p_terms).is_known or (p_subscription).user_id is not null then
        coalesce(headroom.plan_record(p_terms, p_subscriber), '{}') || pg_catalog.jsonb_strip_nulls(
            pg_catalog.jsonb_build_object(
                'transaction', (p_subscription).original_transaction_id,
                'bought', (p_subscription).plan,
                'product', (p_subscription).product,
                'paid_until', headroom.instant_text((p_subscription).expires_at),
                'grace_until', headroom.instant_text((p_subscription).grace_until),
                'billing_issue', headroom.instant_text((p_subscription).billing_issue_at),
                'unsubscribed', headroom.instant_text((p_subscription).unsubscribed_at),
                'revoked', headroom.instant_text((p_subscription).revoked_at),
                'next_plan', (p_subscription).next_plan,
                'next_product', (p_subscription).next_product
            )
        )
    end;
revoke all on function headroom.store_event_record(headroom.terms, headroom.subscribers, headroom.subscriptions) from public;
grant execute on function headroom.store_event_record(headroom.terms, headroom.subscribers, headroom.subscriptions) to headroom_service;
