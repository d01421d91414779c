-- name: count_batch
-- Counts a batch of messages, one row per user, and returns the counts of all users whose messages were all counted.
--
-- $1 uuid: the lane. $2 bigint: the batch's number. $3 uuid[]: users, ascending, each once. $4 text[]: billing periods.
-- $5 integer[]: which of these each user's row is expected in. $6 bigint[]: messages of each user. $7 bigint[]: the
-- terms_version under which the caller knows each user's terms; the least bigint, which no row has, is none.
--
-- The first row holds the counts, place in the arrays * 2^32 + message_count, and nothing else but the time; it is
-- missing when this number was counted before. A row for each user follows whose terms the caller does not know, or who
-- holds messages. What is missing from the counts was not counted: no row, another period, blocked, lapsed or out of
-- date. It takes the careful way (perform_batch). The check stands in the UPDATE's own WHERE, which is evaluated again on
-- the newest row after waiting for a lock: in a CTE beside it, it would let another session's message through.
--
-- The arrays are read by place, and periods, which are few, named by theirs: unnest would copy every element of every
-- array first. None of them holds a null, which would make reading by place slow.
--
-- Rows are locked in the order of $3: the nested loop below walks the places and looks each row up. The lane's session
-- turns off the plans that would not (docs/decisions/0003-lock-order.md). "= any" is there for the same reason: with "="
-- the planner may walk the whole index and go through the places for each row, which it does while the table is small and
-- goes on doing, at a second a batch, until the grown table is analyzed.
with gate as materialized (
    -- Closed when this number was already counted, by a connection that we lost: then nothing below happens.
    select receipt.lane
    from headroom.lane_receipts as receipt
    where receipt.lane = $1 and receipt.number = $2::bigint - 1
    for update
),
counted as (
    update public.message_usage as usage
    set message_count = usage.message_count + ($6::bigint[])[request.ordinal], updated_at = headroom.now()
    from gate, generate_series(1, cardinality($3::uuid[])) as request (ordinal)
    where usage.user_id = any (array[($3::uuid[])[request.ordinal]])
        and usage.billing_period = ($4::text[])[($5::integer[])[request.ordinal]]
        and ($6::bigint[])[request.ordinal] + usage.message_count + usage.held
            <= coalesce(usage."limit", 2147483647)
        and usage.usable_until > headroom.now()
        and usage.plan_revision = (select revision from headroom.plan_revision)
        -- What no constraint allows and no answer can show: headroom.perform says what is wrong with such a row.
        and usage.message_count >= 0 and usage.held >= 0 and headroom.is_instant(usage.started_at)
        and headroom.is_instant(usage.resets_at) and headroom.is_instant(usage.expires_at)
    returning
        request.ordinal,
        usage.message_count,
        -- Terms are the widest part of an answer and nearly always known: a null costs nothing to carry.
        case
            when usage.terms_version = ($7::bigint[])[request.ordinal] and usage.held = 0 then null
            else usage
        end as news
),
receipt as (
    update headroom.lane_receipts as receipt
    set number = $2::bigint,
        counted = (select array_agg(counted.ordinal::bigint << 32 | counted.message_count) from counted),
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
    counted.ordinal, counted.message_count, (counted.news).held, (counted.news)."limit",
    (counted.news).plan, (counted.news).state, (counted.news).started_at, (counted.news).resets_at,
    (counted.news).expires_at, (counted.news).previous_plan, (counted.news).plan_revision, headroom.now(),
    (counted.news).terms_version, null
from counted
where (counted.news).user_id is not null;
