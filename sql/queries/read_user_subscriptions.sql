-- Reads the newest $2 subscriptions of user $1, newest first: the inputs from which the state is derived.
select
    subscription.original_transaction_id, subscription.plan, subscription.started_at, subscription.expires_at,
    subscription.grace_until, subscription.billing_issue_at, subscription.unsubscribed_at, subscription.revoked_at,
    subscription.product, subscription.next_plan
from headroom.subscriptions as subscription
where subscription.bucket = headroom.bucket_of($1) and subscription.user_id = $1
order by subscription.started_at desc nulls last, subscription.original_transaction_id asc
limit $2::bigint;
