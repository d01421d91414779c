-- name: count_batch
-- Counts a batch of messages, one row per user, and returns a row for each user whose messages were all counted.
--
-- $1 uuid: the lane. $2 bigint: the batch's number. $3 uuid[]: users, ascending, each once. $4 text[]: the billing period
-- in which each user's row is expected. $5 bigint[]: messages of each user.
--
-- What is missing from the result was not counted: no row, another period, blocked, lapsed or out of date. It takes the
-- careful way (perform_batch). The check stands in the UPDATE's own WHERE, which is evaluated again on the newest row
-- after waiting for a lock: in a CTE beside it, it would let another session's message through.
--
-- Rows are locked in the order of $3: the nested loop below walks the arrays and looks each row up. The lane's session
-- turns off the plans that would not (docs/decisions/0003-lock-order.md). "= any" is there for the same reason: with "="
-- the planner may walk the whole index and look into the arrays for each row, which it does while the table is small and
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
    set message_count = usage.message_count + request.messages, updated_at = headroom.now()
    from gate, unnest($3::uuid[], $4::text[], $5::bigint[])
        with ordinality as request (user_id, billing_period, messages, ordinal)
    where usage.user_id = any (array[request.user_id]) and usage.billing_period = request.billing_period
        and request.messages + usage.message_count + usage.held <= coalesce(usage."limit", 2147483647)
        and usage.usable_until > headroom.now()
        and usage.plan_revision = (select revision from headroom.plan_revision)
    returning
        request.ordinal, usage.message_count, usage.held, usage."limit", usage.plan, usage.state, usage.started_at,
        usage.resets_at, usage.expires_at, usage.previous_plan, usage.plan_revision
),
receipt as (
    update headroom.lane_receipts as receipt
    set number = $2::bigint,
        counted = (select array_agg(counted.ordinal << 32 | counted.message_count) from counted),
        standings = null,
        moved_at = headroom.now()
    from gate
    where receipt.lane = gate.lane
)
select
    counted.ordinal::integer, counted.message_count, counted.held, counted."limit", counted.plan, counted.state,
    counted.started_at, counted.resets_at, counted.expires_at, counted.previous_plan, counted.plan_revision,
    headroom.now()
from counted;
