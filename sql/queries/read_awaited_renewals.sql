-- Counts the subscriptions that have access because the event of their renewal is awaited, 100,000 at most. $1 text:
-- the setting renewal-leeway as an interval.
select count(*) as awaited
from (
    select subscription.user_id
    from headroom.subscriptions as subscription
    join headroom.plans as plans on plans.plan = subscription.plan
    -- This is the condition of an index. The function has it, too.
    where subscription.expires_at between headroom.now() - $1::text::interval and headroom.now()
        and headroom.is_renewal_awaited(
            headroom.now(), subscription.original_transaction_id, plans.cycle, subscription.expires_at,
            subscription.billing_issue_at, subscription.unsubscribed_at, subscription.revoked_at, subscription.renews,
            $1::text::interval
        )
    limit 100000
) as bounded;
