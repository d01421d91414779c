-- Returns what the audit log records of a user's plan (p_plan, headroom.plan_record) and of one subscription, whose
-- columns the other parameters are. It is p_plan if p_transaction_id is null, because there is no such row. PostgreSQL
-- inlines the function. A parameter of the row's type would become that of a shard when Citus distributes the table.
create or replace function headroom.subscription_record(
    p_plan jsonb, p_transaction_id text, p_bought text, p_product text, p_expires_at timestamptz,
    p_grace_until timestamptz, p_billing_issue_at timestamptz, p_unsubscribed_at timestamptz, p_revoked_at timestamptz,
    p_next_plan text, p_next_product text
) returns jsonb
    language sql stable
    return case
        when p_transaction_id is null then p_plan
        else coalesce(p_plan, '{}') || pg_catalog.jsonb_strip_nulls(pg_catalog.jsonb_build_object(
            'transaction', p_transaction_id,
            'bought', p_bought,
            'product', p_product,
            'paid_until', headroom.instant_text(p_expires_at),
            'grace_until', headroom.instant_text(p_grace_until),
            'billing_issue', headroom.instant_text(p_billing_issue_at),
            'unsubscribed', headroom.instant_text(p_unsubscribed_at),
            'revoked', headroom.instant_text(p_revoked_at),
            'next_plan', p_next_plan,
            'next_product', p_next_product
        ))
    end;
