-- Returns when a store renews the subscription that gives p_plan until p_expires_at, and the plan that then replaces
-- p_plan (null: none). No row if no store renews it: another state, no end, a plan set by set_plan, a cancellation or a
-- failed payment.
--
-- LIMIT keeps this an index scan of one user: for a join without it the planner may read the whole table. PostgreSQL
-- inlines the function.
create or replace function headroom.next_renewal(
    p_user_id uuid, p_state text, p_plan text, p_expires_at timestamptz
) returns table (renews_at timestamptz, next_plan text)
    language sql stable
begin atomic
    select subscription.expires_at as renews_at, nullif(subscription.next_plan, p_plan) as next_plan
    from headroom.subscriptions as subscription
    where p_state = 'active' and p_expires_at is not null
        and subscription.bucket = headroom.bucket_of(p_user_id) and subscription.user_id = p_user_id
        and subscription.original_transaction_id not in ('operator', 'first message')
        and subscription.plan = p_plan and subscription.expires_at = p_expires_at
        and subscription.unsubscribed_at is null and subscription.billing_issue_at is null
        and subscription.revoked_at is null
    limit 1;
end;
