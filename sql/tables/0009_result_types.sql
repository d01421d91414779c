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
    spent_messages integer,
    enforced boolean,
    window_messages integer,
    window_seconds integer,
    -- Whether the user may have balances: then only the slow path can tell the limit.
    has_balances boolean
);

-- Messages that a user may send beyond the allowance of a period: headroom.live_balances.
create type headroom.balance as (
    -- This is the key in headroom.grants.
    key text,
    -- These are left.
    messages integer,
    -- infinity is never.
    expires_at timestamptz
);

-- A user's open window.
create type headroom.usage_window as (
    -- The usage row of this period contains the window. It may be a row of an earlier period or plan.
    billing_period text,
    opened_at timestamptz,
    ends_at timestamptz,
    used integer,
    held integer,
    -- When the first hold of the window ends; null without holds.
    holds_end_at timestamptz
);

-- A user's usage at one instant. "messages": those of the request that the snapshot answers if it counted them, else 0.
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
    messages bigint,
    -- The two instants are null if no window is open, and the limit if the plan has no window.
    window_opened_at timestamptz,
    window_ends_at timestamptz,
    window_used integer,
    window_held integer,
    window_limit integer,
    -- The columns of message_usage: messages of balances that "limit" includes. Null is none.
    extra integer,
    extra_expires timestamptz
);

-- The usage of a part of a user's messages, in the open period unless something else is said.
create type headroom.part_usage as (
    -- This is model, member, or fallback: the model that may be used instead of the part before.
    kind text,
    -- This is the model, or the id of the member, as a request has it.
    name text,
    -- The name in headroom.usage_parts. Null if the plan has no limit for the part: then nothing is counted.
    counter text,
    label text,
    "limit" integer,
    window_limit integer,
    window_seconds integer,
    weight integer,
    fallback text,
    -- The columns of headroom.usage_parts. The instants of the window are null if none is open.
    generation bigint,
    used integer,
    held integer,
    window_opened_at timestamptz,
    window_ends_at timestamptz,
    window_used integer,
    window_held integer,
    holds_end_at timestamptz
);

-- Messages that a user may send until they come back: headroom.allowances.
create type headroom.allowance as (
    -- This is period, window, model or member.
    name text,
    "limit" bigint,
    used bigint,
    -- Messages counted or held.
    taken bigint,
    -- How many messages of it a message of the request takes.
    weight integer,
    -- The limit after the reset; null is none.
    renewed_limit bigint,
    -- When the messages come back.
    resets_at timestamptz,
    -- When the user can then send them; null if access ends before, or if they never come back.
    available_at timestamptz
);

-- An allowance of which a user has reached a tier: headroom.crossed_allowances.
create type headroom.crossed_allowance as (
    user_id uuid,
    billing_period text,
    plan text,
    state text,
    -- This is period, window, model or member.
    allowance text,
    -- The name in headroom.plan_limits of a model, the id of a member; else null. The label is what users read.
    part text,
    label text,
    -- When the window opened that has the tier, and how long it lasts; null if it is that of the billing period.
    window_opened_at timestamptz,
    window_seconds integer,
    tier text,
    used integer,
    held integer,
    "limit" integer,
    resets_at timestamptz
);

-- What only an answer to USAGE shows. All but "manage" are null if the plan does not come from a store.
create type headroom.subscription_details as (
    -- When the store renews the subscription; null if it does not.
    renews_at timestamptz,
    -- The plan after the renewal; null if it stays.
    next_plan text,
    -- The last payment.
    price text,
    currency text,
    -- The address where the user changes the subscription.
    manage text
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
    is_outdated boolean,
    -- The usage row of this period contains the open window; null without one.
    window_period text,
    -- The limit without the messages that are left in balances, and these; null without any.
    plain_limit integer,
    balances headroom.balance array
);

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
    extra integer,
    extra_expires text,
    window_limit integer,
    window_used integer,
    window_remaining integer,
    window_resets text,
    model text,
    model_limit integer,
    model_used integer,
    model_remaining integer,
    model_resets text,
    member uuid,
    member_limit integer,
    member_used integer,
    member_remaining integer,
    period text,
    resets text,
    expires text,
    day integer,
    days integer,
    crossed text,
    reason text,
    retry_after bigint,
    fallback text,
    -- The messages were allowed only because the plan is unenforced. Else null.
    shadow boolean,
    previous_plan text,
    price text,
    currency text,
    manage text
);
