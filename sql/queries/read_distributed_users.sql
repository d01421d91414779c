-- Reads users as read_subscribed_users does, in a distributed database.
select
    subscribed.ordinal, (subscribed.snapshot).*, subscribed.changes_at, -- noqa: AL03
    subscribed.renews_at, subscribed.next_plan, subscribed.price, subscribed.currency, subscribed.manage,
    subscribed.fingerprint
from headroom.subscribed_users($1::uuid[], $2::text[], $3::text) as subscribed;
