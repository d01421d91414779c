-- Inserts the rows of new keys. Raises unique_violation if another session has used one of them meanwhile. Each
-- parameter is an array with one element per key: $1 uuid[]: users. $2 text[]: keys. $3 text[]: verb. $4 text[]:
-- status. $5 text[]: billing_period. $6 timestamptz[]: created_at. $7 timestamptz[]: expires_at. $8 bigint[]:
-- generation; null for that of the usage row. $9 integer[]: messages. $10 to $12 integer[]: used, held, "limit". $13 to
-- $15 integer[]: committed_used, committed_held, committed_limit.
insert into headroom.message_keys (
    bucket, user_id, key, verb, status, billing_period, created_at, expires_at, generation, messages, used, held,
    "limit", committed_used, committed_held, committed_limit
)
select
    headroom.bucket_of(key.user_id) as bucket, key.user_id, key.key, key.verb::"char", key.status::"char",
    key.billing_period,
    key.created_at, key.expires_at,
    coalesce(key.generation, (
        select usage.generation from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(key.user_id) and usage.user_id = key.user_id
            and usage.billing_period = key.billing_period
    )) as generation,
    key.messages, key.used, key.held, key."limit", key.committed_used, key.committed_held, key.committed_limit
from unnest(
    $1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::bigint[],
    $9::integer[], $10::integer[], $11::integer[], $12::integer[], $13::integer[], $14::integer[], $15::integer[]
) as key (
    user_id, key, verb, status, billing_period, created_at, expires_at, generation, messages, used, held, "limit",
    committed_used, committed_held, committed_limit
);
