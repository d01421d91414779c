-- Reads the usage snapshot of each user of a bucket: headroom.read_batch. $5 boolean: whether to read also
-- headroom.subscription_details, which come from the subscription of a store, because only USAGE needs them, and a
-- longer usage row would make counting slower.
select
    read.ordinal, read.is_stale, (read.snapshot).*, details.*, read.words_revision, read.buckets_revision -- noqa: AL03
from headroom.read_batch($1::smallint, $2::uuid[], $3::text[], $4) as read
left join lateral headroom.subscription_details(
    ($2::uuid[])[read.ordinal], (read.snapshot).state, (read.snapshot).plan, (read.snapshot).expires_at,
    (read.snapshot).renews
) as details on $5::boolean;
