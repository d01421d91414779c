-- name: count_keyed_batch
-- As count_batch, where some of the messages have keys: at most one for each user, so that the arrays stay parallel and
-- nothing has to be joined. A user whose key is known already is not counted here; the careful way tells the repetition.
--
-- $1 to $7 and the result as in count_batch. $8 text[]: each user's key, or null. $9 integer[]: messages of the request
-- with the key. $10 bigint[]: messages of the user's requests up to and including that one. Texts of many lengths cannot be
-- read by place without walking the array, so here it is unnested.
--
-- Two sessions with the same new key both try to insert it: the second waits for the first and then fails as a whole
-- with unique_violation. Sent again, it finds the key known.
with gate as materialized (
    select receipt.lane
    from headroom.lane_receipts as receipt
    where receipt.lane = $1 and receipt.number = $2::bigint - 1
    for update
),
counted as (
    update public.message_usage as usage
    set message_count = usage.message_count + request.messages, updated_at = headroom.now()
    from gate, unnest($3::uuid[], $5::integer[], $6::bigint[], $7::bigint[], $8::text[], $9::integer[], $10::bigint[])
        with ordinality as request (
            user_id, billing_period, messages, terms_version, key, key_messages, so_far, ordinal
        )
    where usage.user_id = any (array[request.user_id])
        and usage.billing_period = ($4::text[])[request.billing_period]
        and request.messages + usage.message_count + usage.held <= coalesce(usage."limit", 2147483647)
        and usage.usable_until > headroom.now()
        and usage.plan_revision = (select revision from headroom.plan_revision)
        -- What no constraint allows and no answer can show: headroom.perform says what is wrong with such a row.
        and usage.message_count >= 0 and usage.held >= 0 and headroom.is_instant(usage.started_at)
        and headroom.is_instant(usage.resets_at) and headroom.is_instant(usage.expires_at)
        and (
            select true from headroom.message_keys as keys
            where keys.user_id = request.user_id and keys.key = request.key
        ) is null
    returning
        request.ordinal, request.messages, request.key, request.key_messages, request.so_far,
        usage.user_id, usage.billing_period, usage.generation, usage.message_count, usage.held, usage."limit",
        case when usage.terms_version = request.terms_version and usage.held = 0 then null else usage end as news
),
remembered as (
    insert into headroom.message_keys (
        user_id, created_at, generation, messages, used, held, "limit", verb, status, billing_period, key
    )
    select
        counted.user_id, headroom.now(), counted.generation, counted.key_messages,
        counted.message_count - counted.messages + counted.so_far, counted.held, counted."limit", 'c', 'c',
        counted.billing_period, counted.key
    from counted
    where counted.key is not null
),
receipt as (
    update headroom.lane_receipts as receipt
    set number = $2::bigint,
        counted = (select array_agg(counted.ordinal << 32 | counted.message_count) from counted),
        standings = null,
        moved_at = headroom.now()
    from gate
    where receipt.lane = gate.lane
    returning receipt.counted
)
select
    null::integer as ordinal, null::integer as message_count, null::integer as held, null::integer as "limit",
    null::text as plan, null::text as state, null::timestamptz as started_at, null::timestamptz as resets_at,
    null::timestamptz as expires_at, null::text as previous_plan, null::integer as plan_revision, headroom.now(),
    null::bigint as terms_version, receipt.counted
from receipt
union all
select
    counted.ordinal::integer, counted.message_count, (counted.news).held, (counted.news)."limit",
    (counted.news).plan, (counted.news).state, (counted.news).started_at, (counted.news).resets_at,
    (counted.news).expires_at, (counted.news).previous_plan, (counted.news).plan_revision, headroom.now(),
    (counted.news).terms_version, null
from counted
where (counted.news).user_id is not null;
