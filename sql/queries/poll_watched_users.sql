-- Which of the users that somebody watches have changed, by the transactions that last wrote their rows.
--
-- $1 uuid[]: users. $2 text[]: each user's fingerprint, as read_watched_users said it.
--
-- A row for each that has changed: its place in the arrays, from 1. What another instance counts, an operator's UPDATE
-- and DELETE, and every function show here alike, and it costs those who make the change nothing: NOTIFY in each of their
-- transactions would have them commit one after the other.
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
