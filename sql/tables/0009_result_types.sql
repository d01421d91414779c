-- Types that functions return.

-- What a user may send, and until when that is valid.
create type headroom.entitlement as (
    user_id uuid,
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

-- A user's usage at one instant. "messages": what the request counted that the snapshot answers, else 0.
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
    messages bigint
);

-- A user that is locked for the slow path of counting.
create type headroom.locked_user as (
    -- Before the user's requests.
    snapshot headroom.usage_snapshot,
    -- What the usage row is written with: headroom.write_usage_rows.
    entitlement headroom.entitlement,
    -- All messages that are held, which may be more than fit into "held", and when the first hold ends.
    held_by_keys bigint,
    holds_end_at timestamptz,
    has_subscriber boolean,
    has_usage_row boolean,
    -- Of the usage row, or of the row to insert. Null if creating the subscriber will restore the row of a spent trial.
    generation bigint,
    -- Whether the usage row differs from the entitlement, so that it is written even if nothing is counted.
    is_outdated boolean
);

-- The fields of an answer line that SQL functions return, in the order of the protocol. They are all but renews,
-- grace_until, released, replayed and next_plan. "limit" and remaining are null if unlimited.
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

-- A row of headroom.count_batch or count_keyed_batch: the first row has all counts, each other row the snapshot of a
-- user whose cached one does not suffice.
create type headroom.count_batch_row as (
    counts bigint array,
    ordinal integer,
    -- Of the request with a key; null without one.
    key_messages integer,
    entitlement_version bigint,
    -- The columns of headroom.usage_snapshot. The first row has observed_at alone.
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
    messages bigint
);

-- A key of a request that was counted: headroom.write_counted_keys.
create type headroom.counted_key as (
    user_id uuid,
    key text,
    -- consume, reserve, commit or release
    verb text,
    messages integer,
    used integer,
    held integer,
    "limit" integer,
    generation bigint,
    billing_period text,
    hold_seconds integer
);
