-- Reads held and "limit" of the first use of each key, for a batch that was counted before its connection was lost.
-- $1 uuid[]: users. $2 text[]: a key of each, or null.
--
-- LIMIT keeps this from becoming a join, which would read all keys if the table was small when it was last analyzed.
select request.ordinal::integer, used.held, used."limit"
from unnest($1::uuid[], $2::text[]) with ordinality as request (user_id, key, ordinal)
cross join lateral (
    select keys.held, keys."limit" from headroom.message_keys as keys
    where keys.bucket = headroom.bucket_of(request.user_id) and keys.user_id = request.user_id
        and keys.key = request.key
    limit 1
) as used;
