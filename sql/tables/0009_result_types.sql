-- Types that functions return.

-- What a user may send, and until when that is valid.
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
    -- Whether a store renews it at expires_at; null if it does not come from a store.
    renews boolean,
    usable_until timestamptz,
    plan_revision integer,
    -- Messages that count in this period and are not in its row: those in the spent trial of a forgotten user without a
    -- new subscriber, and those that were counted in later months while the clock was ahead. Else null.
    spent_messages integer
);

-- A user's usage after a request, and the outcome of the request. verdict: allowed, blocked, held, released, ok;
-- conflict, expired, unknown_key or released_key if the key cannot be used so. "messages": the messages that this
-- request counted, held or released, 0 for a repetition.
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
    renews boolean,
    observed_at timestamptz,
    plan_revision integer,
    verdict text,
    messages bigint,
    is_replay boolean
);

-- The fields of an answer line, in the order of the protocol. "limit" and remaining are null if unlimited.
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
    state_label text,
    accessible text,
    price text,
    currency text,
    manage text,
    steps text,
    notice text,
    banner text
);

-- A row of headroom.count_batch: the first row has all counts, each other row the entitlement of a user that its caller
-- has not cached.
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
    renews boolean,
    plan_revision integer,
    observed_at timestamptz,
    entitlement_version bigint,
    counts bigint array
);
