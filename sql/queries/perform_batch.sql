-- Performs a lane's requests on the slow path, in their order. Returns one row per request, in the same order.
--
-- $1 uuid: lane. $2 bigint: number of the batch. $3 uuid[]: users, ascending, each once. $4 integer[]: the ordinal of
-- each user's first request in the arrays that follow. $5 text[]: verbs. $6 integer[]: messages. $7 text[]: keys.
-- $8 integer[]: seconds that a hold lasts. $9 text: trial, free or deny, for unknown users.
select
    snapshot.ordinal::integer, snapshot.used, snapshot.held, snapshot."limit", snapshot.plan, snapshot.state,
    snapshot.started_at, snapshot.resets_at, snapshot.expires_at, snapshot.previous_plan, snapshot.plan_revision,
    snapshot.observed_at, snapshot.billing_period, snapshot.denial_reason, snapshot.verdict, snapshot.messages,
    snapshot.is_replay
from unnest(headroom.perform_batch(
    $1, $2::bigint, $3::uuid[], $4::integer[], $5::text[], $6::integer[], $7::text[], $8::integer[], $9
))
    with ordinality as snapshot (
        plan, state, denial_reason, billing_period, used, held, "limit", started_at, resets_at, expires_at,
        previous_plan, observed_at, plan_revision, verdict, messages, is_replay, ordinal
    );
