-- Returns whether a store's subscription has reached the end of the paid time less than p_leeway ago, and nothing says
-- that it is not renewed (headroom.judged_subscription). PostgreSQL inlines the function.
create or replace function headroom.is_renewal_awaited(
    p_at timestamptz, p_transaction_id text, p_cycle text, p_expires_at timestamptz, p_billing_issue_at timestamptz,
    p_unsubscribed_at timestamptz, p_revoked_at timestamptz, p_renews boolean, p_leeway interval
) returns boolean
    language sql stable
    return coalesce(
        p_expires_at <= p_at and p_at < p_expires_at + p_leeway
        and p_transaction_id not in ('operator', 'first message') and p_cycle <> 'trial'
        and p_billing_issue_at is null and p_unsubscribed_at is null and p_revoked_at is null
        and p_renews is distinct from false,
        false
    );
