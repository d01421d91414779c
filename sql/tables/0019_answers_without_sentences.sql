-- Answers in SQL without the sentences, which only the service says.

-- The functions that return the type, and the views that show it, are created again after the migrations.
drop type headroom.answer cascade;

-- The fields of an answer line, in the order of the protocol. They are all but renews, grace_until, released, replayed,
-- next_plan and the sentences. "limit" and remaining are null if unlimited. Instants are texts, so that JSON of an
-- answer has them as HTTP does: 2026-11-24T09:30:00Z.
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
    window_limit integer,
    window_used integer,
    window_remaining integer,
    window_resets text,
    period text,
    resets text,
    expires text,
    day integer,
    days integer,
    crossed text,
    reason text,
    retry_after bigint,
    -- The messages were counted, and the plan's limit would have refused them if it were enforced. Else null.
    shadow boolean,
    previous_plan text,
    price text,
    currency text,
    manage text
);
