-- Reads those of the named keys that were used before. $1 smallint: bucket. $2 uuid[]: users of this bucket. $3 text[]:
-- a key of each user, or null. ordinal: the position in these arrays.
--
-- LIMIT keeps this from becoming a join, which would read all keys if the table was small when it was last analyzed.
select
    request.ordinal::integer, used.verb::text, used.status::text, used.messages, used.used, used.held, used."limit",
    used.committed_messages, used.committed_used, used.committed_held, used.committed_limit, used.created_at,
    used.expires_at, used.generation, used.billing_period, used.window_opened_at, used.window_used, used.window_held,
    used.window_limit, used.committed_window_used, used.committed_window_held, used.committed_window_limit,
    used.parts::text
from unnest($2::uuid[], $3::text[]) with ordinality as request (user_id, key, ordinal)
cross join lateral (
    select keys.* from headroom.message_keys as keys
    where keys.bucket = $1::smallint and keys.user_id = request.user_id and keys.key = request.key
    limit 1
) as used;
