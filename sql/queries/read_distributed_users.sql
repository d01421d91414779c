-- Reads users as read_subscribed_users does, in a distributed database.
select
    subscribed.ordinal, (subscribed.snapshot).*, (subscribed.details).*, -- noqa: AL03
    subscribed.changes_at, subscribed.fingerprint
from headroom.subscribed_users($1::uuid[], $2::text[], $3::text) as subscribed;
