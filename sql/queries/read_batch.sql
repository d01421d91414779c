-- Reads the usage snapshot of each user of a bucket. Locks nothing and creates nothing. $1 smallint: bucket. $2 uuid[]:
-- users, distinct and ascending. $3 text[]: the billing period in which each user's row is expected. $4 text: what
-- users without a subscription get: trial, free or deny. buckets_revision: of the map of buckets; if it is another than
-- the caller's, users may be in other buckets.
--
-- A usable row gives the snapshot. The others are derived together, by headroom.entitlements. is_stale: the next
-- message will rewrite a row of the user. renews_at, next_plan, price and currency come from the subscription: only
-- USAGE needs them, and a longer usage row would make counting slower.
with usable as materialized (
    select request.ordinal::integer, request.user_id, false as is_stale, snapshot.*
    from unnest($2::uuid[], $3::text[]) with ordinality as request (user_id, billing_period, ordinal)
    cross join lateral (
        select (one.snapshot).* -- noqa: AL03
        from headroom.row_snapshots as one
        where one.bucket = $1::smallint and one.user_id = request.user_id
            and one.billing_period = request.billing_period
            and headroom.is_usable(
                one.usable_until, one.updated_at, one.plan_revision,
                (select revised.revision from headroom.plan_revision as revised), headroom.now()
            )
        limit 1
    ) as snapshot
),
derived as materialized (
    select
        others.ordinals[width_bucket(entitlement.user_id, others.users)] as ordinal, entitlement.user_id,
        snapshot.denial_reason is null and exists (
            select from public.message_usage as usage
            where usage.bucket = $1::smallint and usage.user_id = entitlement.user_id
                and (
                    usage.billing_period = snapshot.billing_period
                    and (usage.usable_until <= headroom.now() or usage.plan_revision <> snapshot.plan_revision)
                    or usage.updated_at > headroom.now() + interval '1 hour'
                )
        ) as is_stale,
        snapshot.*
    from (
        select
            array_agg(request.user_id order by request.ordinal) as users,
            array_agg(request.ordinal::integer order by request.ordinal) as ordinals
        from unnest($2::uuid[]) with ordinality as request (user_id, ordinal)
        where request.ordinal <> all(array(select usable.ordinal from usable))
    ) as others
    -- Not called if all rows are usable.
    cross join lateral headroom.entitlements($1::smallint, others.users, headroom.now(), $4) as entitlement
    cross join lateral headroom.read_open_usage(entitlement) as snapshot
    where others.users is not null
)
select
    snapshot.*, details.renews_at, details.next_plan, details.price, details.currency,
    headroom.manage_address(details.store) as manage,
    (select revised.words_revision from headroom.plan_revision as revised) as words_revision,
    (select revised.buckets_revision from headroom.plan_revision as revised) as buckets_revision
from (
    select usable.* from usable
    union all
    select derived.* from derived
) as snapshot
left join lateral headroom.subscription_details(
    snapshot.user_id, snapshot.state, snapshot.plan, snapshot.expires_at, snapshot.renews
) as details on true;
