-- Finds the subscribed users that have changed, by the transactions that last wrote their rows. Returns the ordinals of
-- these users. $1 uuid[]: users. $2 text[]: each user's fingerprint from read_subscribed_users.
--
-- It finds changes by other instances, by an operator's UPDATE or DELETE, and by every function, and costs their
-- transactions nothing. NOTIFY would make these transactions commit one after the other.
select request.ordinal::integer
from unnest($1::uuid[], $2::text[]) with ordinality as request (user_id, fingerprint, ordinal)
where request.fingerprint <> concat_ws(
    '/',
    (select string_agg(usage.xmin::text, ',') from public.message_usage as usage
     where usage.bucket = headroom.bucket_of(request.user_id) and usage.user_id = request.user_id),
    (select subscriber.xmin::text from headroom.subscribers as subscriber
     where subscriber.bucket = headroom.bucket_of(request.user_id) and subscriber.user_id = request.user_id),
    (select string_agg(subscription.xmin::text, ',') from headroom.subscriptions as subscription
     where subscription.bucket = headroom.bucket_of(request.user_id) and subscription.user_id = request.user_id)
);
