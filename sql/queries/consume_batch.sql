-- name: consume_batch
-- Counts the careful way, in the order of the requests: for users whom count_batch could not count.
--
-- $1 uuid: the lane. $2 bigint: the batch's number. $3 uuid[]: users, ascending, each once. $4 integer[]: where each user's
-- messages begin in $5, from 1. $5 integer[]: the requests' messages. $6 text: trial, free or deny, for unknown users.
--
-- A row per user, in their order: the standing before the user's first request, and how many messages were counted.
select
    standing.ordinal::integer, standing.used, standing.held, standing."limit", standing.plan, standing.state,
    standing.started_at, standing.resets_at, standing.expires_at, standing.previous_plan, standing.plan_revision,
    standing.observed_at, standing.billing_period, standing.lapse, standing.counted
from unnest(headroom.consume_batch($1, $2, $3::uuid[], $4::integer[], $5::integer[], $6))
    with ordinality as standing (
        plan, state, lapse, billing_period, used, held, "limit", started_at, resets_at, expires_at, previous_plan,
        observed_at, plan_revision, counted, ordinal
    );
