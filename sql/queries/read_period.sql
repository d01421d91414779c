-- A user's row of one billing period, whether or not it may still be counted in.
--
-- $1 uuid: the user. $2 text: the period. The plan is the one under which the row was last counted; a row that only
-- older clients wrote has none, and shows as paid. It is not the user's current period, so it is over by now, whatever
-- its cycle: a trial that became a subscription, say.
select
    usage.message_count as used, headroom.held_messages(usage.user_id, usage.billing_period, usage.held), usage."limit",
    coalesce(usage.plan, 'paid'), coalesce(usage.state, 'active'), coalesce(usage.started_at, usage.updated_at),
    least(usage.resets_at, headroom.now()), usage.expires_at, usage.previous_plan, revised.revision, headroom.now(),
    usage.billing_period
from public.message_usage as usage
cross join headroom.plan_revision as revised
where usage.bucket = headroom.bucket_of($1) and usage.user_id = $1 and usage.billing_period = $2;
