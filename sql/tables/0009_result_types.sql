-- What functions return.

-- What a user may do, and until when that answer holds by itself.
create type headroom.entitlement as (
    has_subscription boolean,
    plan text,
    cycle text,
    state text,
    denial_reason text,
    billing_period text,
    allowance integer,
    started_at timestamptz,
    resets_at timestamptz,
    expires_at timestamptz,
    previous_plan text,
    usable_until timestamptz,
    plan_revision integer,
    -- Of a user who was forgotten and did not come back yet; else null.
    spent_messages integer
);

-- A user's standing as the service and increment_and_check_usage answer it, after what was asked, and what became of it.
-- verdict: allowed, blocked, held, released, ok; conflict, expired, unknown_key, released_key for a key that cannot be
-- used so. "messages" is what was counted, held or given back by this very request, 0 for a repetition.
create type headroom.usage_snapshot as (
    plan text,
    state text,
    denial_reason text,
    billing_period text,
    used integer,
    held integer,
    "limit" integer,
    started_at timestamptz,
    resets_at timestamptz,
    expires_at timestamptz,
    previous_plan text,
    observed_at timestamptz,
    plan_revision integer,
    verdict text,
    messages bigint,
    is_replay boolean
);

-- The fields of an answer line of the protocol, in its order. "limit" and remaining are null when unlimited.
create type headroom.answer as (
    status text,
    "user" uuid,
    plan text,
    state text,
    tier text,
    display text,
    used integer,
    held integer,
    "limit" integer,
    remaining integer,
    period text,
    resets timestamptz,
    expires timestamptz,
    day integer,
    days integer,
    crossed text,
    reason text,
    retry_after bigint,
    previous_plan text,
    label text,
    accessible text,
    notice text,
    banner text
);

-- What headroom.count_batch counted: in the first row all counts, in the others what its caller does not know of a user.
create type headroom.count_batch_row as (
    ordinal integer,
    message_count integer,
    held integer,
    "limit" integer,
    plan text,
    state text,
    started_at timestamptz,
    resets_at timestamptz,
    expires_at timestamptz,
    previous_plan text,
    plan_revision integer,
    observed_at timestamptz,
    entitlement_version bigint,
    counts bigint[]
);
