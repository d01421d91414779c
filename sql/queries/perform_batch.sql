-- Executes a lane's batch of requests that the fast path cannot answer (headroom.perform_batch). Returns one row per
-- request, in the order of the requests.
--
-- $1 uuid: lane. $2 bigint: number of the batch; a lane that repeats a batch sends the same number. $3 uuid[]: distinct
-- users in ascending order. $5 to $8 have one element per request, grouped by user: $5 text[]: verbs. $6 integer[]:
-- numbers of messages. $7 text[]: keys. $8 integer[]: seconds that a hold lasts. $4 integer[]: for each user, the
-- 1-based position of the user's first request in these arrays. $9 text: what users without a subscription get: trial,
-- free or deny.
select
    snapshot.ordinal::integer, snapshot.used, snapshot.held, snapshot."limit", snapshot.plan, snapshot.state,
    snapshot.started_at, snapshot.resets_at, snapshot.expires_at, snapshot.previous_plan, snapshot.renews,
    snapshot.plan_revision, snapshot.observed_at, snapshot.billing_period, snapshot.denial_reason, snapshot.verdict,
    snapshot.messages, snapshot.is_replay
from unnest(headroom.perform_batch(
    $1, $2::bigint, $3::uuid[], $4::integer[], $5::text[], $6::integer[], $7::text[], $8::integer[], $9
))
    with ordinality as snapshot (
        plan, state, denial_reason, billing_period, used, held, "limit", started_at, resets_at, expires_at,
        previous_plan, renews, observed_at, plan_revision, verdict, messages, is_replay, ordinal
    );
