-- Reads the usage snapshot of each user. Locks nothing and creates nothing. $1 uuid[]: users. $2 text[]: the billing
-- period in which each user's row is expected. $3 text: what users without a subscription get:
-- trial, free or deny.
--
-- A usable row gives the snapshot. Otherwise headroom.read_usage_snapshot computes it: the second part of the union is
-- only evaluated if the first found nothing. is_stale: the next message will rewrite a row of the user.
-- renews_at, next_plan, price and currency come from the subscription: only USAGE needs them, and a longer usage row
-- would make counting slower.
select
    request.ordinal::integer, snapshot.used, snapshot.held, snapshot."limit", snapshot.plan, snapshot.state,
    snapshot.started_at, snapshot.resets_at, snapshot.expires_at, snapshot.previous_plan, snapshot.renews,
    snapshot.plan_revision, snapshot.observed_at, snapshot.billing_period, snapshot.denial_reason, snapshot.is_stale,
    details.renews_at, details.next_plan, details.price, details.currency,
    headroom.manage_address(details.store) as manage
from unnest($1::uuid[], $2::text[]) with ordinality as request (user_id, billing_period, ordinal)
cross join lateral (
    select
        usage.message_count as used, usage.held, usage."limit", usage.plan, usage.state, usage.started_at,
        usage.resets_at, usage.expires_at, usage.previous_plan, usage.renews, usage.plan_revision,
        headroom.now() as observed_at,
        usage.billing_period, null::text as denial_reason, false as is_stale
    from public.message_usage as usage
    where usage.bucket = headroom.bucket_of(request.user_id) and usage.user_id = request.user_id
        and usage.billing_period = request.billing_period
        and usage.usable_until > headroom.now()
        -- A row that is dated later was written while the clock was ahead, and the next message corrects it.
        and usage.updated_at <= headroom.now() + interval '1 hour'
        and usage.plan_revision = (select revised.revision from headroom.plan_revision as revised)
    union all
    select
        snapshot.used, snapshot.held, snapshot."limit", snapshot.plan, snapshot.state, snapshot.started_at,
        snapshot.resets_at, snapshot.expires_at, snapshot.previous_plan, snapshot.renews, snapshot.plan_revision,
        snapshot.observed_at,
        snapshot.billing_period, snapshot.denial_reason,
        snapshot.denial_reason is null and exists (
            select from public.message_usage as usage
            where usage.bucket = headroom.bucket_of(request.user_id) and usage.user_id = request.user_id
                and (
                    usage.billing_period = snapshot.billing_period
                    and (usage.usable_until <= headroom.now() or usage.plan_revision <> snapshot.plan_revision)
                    or usage.updated_at > headroom.now() + interval '1 hour'
                )
        ) as is_stale
    from headroom.read_usage_snapshot(request.user_id, $3) as snapshot
    limit 1
) as snapshot
left join lateral headroom.subscription_details(
    request.user_id, snapshot.state, snapshot.plan, snapshot.expires_at, snapshot.renews
) as details on true;
