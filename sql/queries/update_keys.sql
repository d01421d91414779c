-- Updates the rows of used keys whose messages were committed or released. The transaction has locked the users.
-- Parameters as for insert_keys.sql. A key that was deleted meanwhile, because it is old, is inserted again.
--
-- Not an UPDATE with a join, which may read the whole table if it was small when it was last analyzed.
insert into headroom.message_keys as used (
    bucket, user_id, key, verb, status, billing_period, created_at, expires_at, generation, messages, used, held,
    "limit", committed_used, committed_held, committed_limit
)
select
    headroom.bucket_of(key.user_id) as bucket, key.user_id, key.key, key.verb::"char", key.status::"char",
    key.billing_period, key.created_at, key.expires_at, key.generation, key.messages, key.used, key.held, key."limit",
    key.committed_used, key.committed_held, key.committed_limit
from unnest(
    $1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::bigint[],
    $9::integer[], $10::integer[], $11::integer[], $12::integer[], $13::integer[], $14::integer[], $15::integer[]
) as key (
    user_id, key, verb, status, billing_period, created_at, expires_at, generation, messages, used, held, "limit",
    committed_used, committed_held, committed_limit
)
on conflict (bucket, user_id, key) do update
set status = excluded.status, generation = excluded.generation, committed_used = excluded.committed_used,
    committed_held = excluded.committed_held, committed_limit = excluded.committed_limit;
