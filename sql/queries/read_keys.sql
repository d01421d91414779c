-- What the first use of each key was told beside its count: asked after a batch was counted by a connection that was
-- lost.
--
-- $1 uuid[]: users. $2 text[]: a key of each, or null.
--
-- "limit" keeps it from becoming a join, which would read all keys where the table was small when it was analyzed.
select request.ordinal::integer, known.held, known."limit"
from unnest($1::uuid[], $2::text[]) with ordinality as request (user_id, key, ordinal)
cross join lateral (
    select keys.held, keys."limit" from headroom.message_keys as keys
    where keys.bucket = headroom.bucket_of(request.user_id) and keys.user_id = request.user_id and keys.key = request.key
    limit 1
) as known;
