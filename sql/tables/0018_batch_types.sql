-- What batches return.

-- The snapshot of a user whose messages a batch has counted, and whose cached one does not suffice. CountBatchStatement
-- reads the columns by their positions.
create type headroom.counted_row as (
    -- This is the user's ordinal among those of the batch.
    ordinal integer,
    -- These are the messages of the request with a key; null without one.
    key_messages integer,
    entitlement_version bigint,
    -- The columns of headroom.usage_snapshot.
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
    messages bigint,
    window_opened_at timestamptz,
    window_ends_at timestamptz,
    window_used integer,
    window_held integer,
    window_limit integer,
    extra integer,
    extra_expires timestamptz
);

-- What a batch has counted: headroom.count_batch.
create type headroom.counted_batch as (
    counts bigint array,
    observed_at timestamptz,
    -- Other instances read the words again when it has changed.
    words_revision integer,
    -- Each is a headroom.counted_row as record_send returns it: while PostgreSQL sends an array of records, it keeps a
    -- kilobyte for each of their values, which takes 6 microseconds a row. Null without a row, as nearly always.
    usage_rows bytea array,
    -- For each part of a counted user, (ordinal << 32) | used. With holds or an open window, 2^62 is added, and five
    -- numbers follow: held, the microseconds since 1970 at which the window opened and at which it ends, its used and
    -- its held messages; those of no window are 0. Null without parts.
    parts bigint array
);
