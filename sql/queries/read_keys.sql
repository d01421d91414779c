-- name: read_keys
-- What the first use of each key was told beside its count: asked after a batch was counted by a connection that was
-- lost.
--
-- $1 uuid[]: users. $2 text[]: a key of each, or null.
select request.ordinal::integer, keys.held, keys."limit"
from unnest($1::uuid[], $2::text[]) with ordinality as request (user_id, key, ordinal)
join headroom.message_keys as keys
    on keys.bucket = headroom.bucket_of(request.user_id) and keys.user_id = request.user_id and keys.key = request.key;
