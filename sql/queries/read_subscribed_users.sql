-- Reads the usage snapshots of users to whom connections have subscribed (SUBSCRIBE), with the columns of
-- read_batch.sql, and a fingerprint of each user. If a later poll finds another fingerprint, the user has changed. $1
-- uuid[]: users. $2 text[]: the billing period in which each user's row is expected. $3 text: what users without a
-- subscription get: trial, free or deny.
--
-- changes_at: when time alone changes the snapshot, at the end of the period, window, trial, grace, access or a hold.
-- The caller adds the days of a trial. The fingerprint comes from the same statement, so that no change is missed.
select
    request.ordinal::integer, snapshot.*, details.*, present.fingerprint
from unnest($1::uuid[], $2::text[]) with ordinality as request (user_id, billing_period, ordinal)
cross join lateral (
    select (usage.snapshot).*, least(usage.usable_until, (usage.snapshot).window_ends_at) as changes_at -- noqa: AL03
    from headroom.row_snapshots as usage
    where usage.bucket = headroom.bucket_of(request.user_id) and usage.user_id = request.user_id
        and usage.billing_period = request.billing_period
        and headroom.is_usable(
            usage.usable_until, usage.updated_at, usage.plan_revision,
            (select revised.revision from headroom.plan_revision as revised), headroom.now()
        )
    union all
    select
        open_usage.*,
        least(entitlement.usable_until, open_usage.window_ends_at, open_usage.extra_expires, (
            select holds.ends_at
            from headroom.active_holds(request.user_id, open_usage.billing_period, headroom.now()) as holds
        )) as changes_at
    from headroom.entitlement(request.user_id, headroom.now(), $3) as entitlement
    cross join lateral headroom.read_open_usage(entitlement) as open_usage
    limit 1
) as snapshot
cross join lateral headroom.subscription_details(
    request.user_id, snapshot.state, snapshot.plan, snapshot.expires_at, snapshot.renews
) as details
cross join lateral headroom.fingerprint(request.user_id) as present;
