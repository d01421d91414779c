-- Finds the subscribed users that have changed, by the transactions that last wrote their rows. Returns the ordinals of
-- these users. $1 uuid[]: users. $2 text[]: each user's fingerprint from read_subscribed_users.
--
-- It finds changes by other instances, by an operator's UPDATE or DELETE, and by every function, and costs their
-- transactions nothing. NOTIFY would make these transactions commit one after the other.
select request.ordinal::integer
from unnest($1::uuid[], $2::text[]) with ordinality as request (user_id, fingerprint, ordinal)
cross join lateral headroom.fingerprint(request.user_id) as present
where present.fingerprint <> request.fingerprint;
