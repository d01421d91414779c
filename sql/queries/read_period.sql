-- Reads a user's row of one billing period other than the current one. $1 uuid: user. $2 text: period. The plan is the
-- one under which the row was last counted; a row that only older clients wrote has none and counts as paid. The
-- answer shows the period as over, even if it never resets, such as a trial that became a subscription.
select
    usage.message_count as used, headroom.held_messages(usage.user_id, usage.billing_period, usage.held) as held,
    usage."limit", coalesce(usage.plan, 'paid') as plan, coalesce(usage.state, 'active') as state,
    coalesce(usage.started_at, usage.updated_at) as started_at, least(usage.resets_at, headroom.now()) as resets_at,
    usage.expires_at, usage.previous_plan, usage.renews, revised.revision as plan_revision,
    headroom.now() as observed_at,
    usage.billing_period, null::text as denial_reason
from public.message_usage as usage
cross join headroom.plan_revision as revised
where usage.bucket = headroom.bucket_of($1) and usage.user_id = $1 and usage.billing_period = $2;
