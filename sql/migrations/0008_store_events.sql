-- What stores tell about subscriptions: events, kept once each, and the subscriptions that follow from them.
--
-- Stores send an event again until it is acknowledged, and in no certain order. So a subscription is not changed by an
-- event: it is the fold of all its events, in the order in which they happened, computed anew with each. Every order of
-- arrival and every repetition then ends in the same row, also where an event says only a part
-- (docs/decisions/0009-fold-of-events.md).

alter table headroom.subscriptions
    add column product text,
    add column next_plan text references headroom.plans on update cascade,
    add column next_product text,
    add column environment text,
    add column event_at timestamptz,
    add column anchor_day smallint;
comment on column headroom.subscriptions.next_plan is 'Takes the place of plan with the next renewal.';
comment on column headroom.subscriptions.event_at is 'When the newest event that is in this row happened.';
comment on column headroom.subscriptions.anchor_day is
    'Day of the month on which it was bought; the newest one of a user''s is in headroom.subscribers.';

-- The fold writes subscribers.previous_plan; what was there before the first event, where it starts, is kept here.
alter table headroom.subscribers add column declared_previous_plan text references headroom.plans on update cascade;
comment on column headroom.subscribers.declared_previous_plan is
    'previous_plan as it was before the first of the store events that are in force.';

-- An event as its store told it, once: nothing in a row changes after. No payload: only what the fold needs is kept.
create table headroom.store_events (
    source text not null,
    event_id text not null,
    user_id uuid references headroom.subscribers on delete cascade,
    original_transaction_id text,
    event_at timestamptz not null,
    received_at timestamptz not null,
    kind text not null,
    plan text references headroom.plans on update cascade,
    product text,
    next_plan text references headroom.plans on update cascade,
    next_product text,
    started_at timestamptz,
    expires_at timestamptz,
    grace_until timestamptz,
    anchor_day smallint,
    environment text,
    outcome text not null,
    primary key (source, event_id),
    constraint outcome_is_known check (outcome in ('applied', 'waiting', 'outdated', 'ignored'))
);
comment on table headroom.store_events is 'Store events, each once. headroom.subscriptions is their fold.';
comment on column headroom.store_events.outcome is
    'What apply_store_event answered: applied; waiting, until another event tells the plan; outdated, by a set_plan;
    ignored, a kind that changes no subscription.';
create index store_events_user on headroom.store_events (user_id, event_at);
-- Some stores name the user in the first event only; the others are found by their transaction.
create index store_events_transaction on headroom.store_events (original_transaction_id, event_at)
    where user_id is not null;

-- Reading -------------------------------------------------------------------------------------------------------------

-- An instant of an event, in the form that the line protocol takes: 2026-11-24 (midnight UTC) or 2026-11-24T09:30:00Z.
-- Without an offset it would mean something else in each session's time zone.
create function headroom.store_event_instant(p_field text, p_text text) returns timestamptz
    language plpgsql stable set search_path = pg_catalog
as $$
declare
    v_instant timestamptz;
begin
    if length(p_text) > 32
        or p_text !~ '^\d{4}-\d\d-\d\d(T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-](0\d|1[0-5]):[0-5]\d))?$'
    then
        raise exception '% is not an instant', quote_literal(p_field)
            using errcode = 'invalid_parameter_value',
                hint = 'Write 2026-11-24T09:30:00Z, or 2026-11-24 for its midnight in UTC.';
    end if;
    begin
        v_instant := case when length(p_text) = 10 then p_text || 'T00:00:00Z' else p_text end::timestamptz;
    exception when datetime_field_overflow or invalid_datetime_format then
        raise exception '% is a day that does not exist', quote_literal(p_field)
            using errcode = 'invalid_parameter_value';
    end;
    if v_instant < '1970-01-01T00:00:00Z' or v_instant >= '10000-01-01T00:00:00Z' then
        raise exception '% must be in the years 1970 to 9999', quote_literal(p_field)
            using errcode = 'invalid_parameter_value';
    end if;
    return v_instant;
end
$$;

-- The event with each field in its place, or an error that names the field. Looks at each by itself; what they mean
-- together is headroom.check_store_event's matter.
create function headroom.read_store_event(p_event jsonb) returns headroom.store_events
    language plpgsql stable set search_path = pg_catalog
as $$
declare
    v_event headroom.store_events;
    v_field text;
    v_value jsonb;
    v_text text;
    v_pattern text;
    v_length_maximum integer;
begin
    if p_event is null then
        raise exception 'p_event is null: pass the event as a JSON object' using errcode = 'null_value_not_allowed';
    elsif jsonb_typeof(p_event) <> 'object' then
        raise exception 'p_event must be a JSON object' using errcode = 'invalid_parameter_value';
    end if;
    for v_field, v_value in select * from jsonb_each(p_event) loop
        v_text := v_value #>> '{}';
        -- Lengths are looked at by themselves: a pattern that counts to 255 takes ten times as long.
        v_pattern := case
            when v_field in ('source', 'plan', 'next_plan') then '^[a-z][a-z0-9_]*$'
            when v_field = 'kind' then '^[A-Za-z][A-Za-z0-9_./-]*$'
            when v_field = 'user' then '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$'
            when v_field = 'anchor' then '^([1-9]|[12][0-9]|3[01])$'
            else '^[^[:cntrl:]]+$'
        end;
        v_length_maximum := case
            when v_field in ('source', 'plan', 'next_plan') then 32 when v_field = 'kind' then 64 else 255
        end;
        if not v_field = any (array[
            'id', 'source', 'at', 'user', 'transaction', 'kind', 'plan', 'product', 'next_plan', 'next_product',
            'started', 'expires', 'grace_until', 'anchor', 'environment'
        ]) then
            raise exception 'a store event has no field %', quote_literal(left(v_field, 64))
                using errcode = 'invalid_parameter_value',
                    hint = 'Its fields are id, source, at, user, transaction, kind, plan, product, next_plan, '
                        'next_product, started, expires, grace_until, anchor and environment.';
        elsif v_text is null then
            continue;
        elsif v_field = 'anchor' and (jsonb_typeof(v_value) <> 'number' or v_text !~ v_pattern) then
            raise exception '''anchor'' must be a number, the day of the month from 1 to 31'
                using errcode = 'invalid_parameter_value';
        elsif v_field <> 'anchor' and jsonb_typeof(v_value) <> 'string' then
            raise exception '% must be a text', quote_literal(v_field) using errcode = 'invalid_parameter_value';
        elsif length(v_text) > v_length_maximum or v_text !~ v_pattern then
            raise exception '% does not have the form of one', quote_literal(v_field)
                using errcode = 'invalid_parameter_value', hint = case v_field
                    when 'user' then 'A user is a UUID, 8-4-4-4-12 hexadecimal digits.'
                    when 'source' then 'Lower-case letters, digits and underscores, at most 32.'
                    when 'kind' then 'Letters, digits and _./- are allowed, at most 64.'
                    when 'plan' then 'select plan from headroom.plans lists the plans.'
                    when 'next_plan' then 'select plan from headroom.plans lists the plans.'
                    else 'It has 1 to 255 characters, none of them a control character.'
                end;
        end if;
        case v_field
            when 'id' then v_event.event_id := v_text;
            when 'source' then v_event.source := v_text;
            when 'at' then v_event.event_at := headroom.store_event_instant(v_field, v_text);
            when 'user' then v_event.user_id := v_text::uuid;
            when 'transaction' then v_event.original_transaction_id := v_text;
            when 'kind' then v_event.kind := v_text;
            when 'plan' then v_event.plan := v_text;
            when 'product' then v_event.product := v_text;
            when 'next_plan' then v_event.next_plan := v_text;
            when 'next_product' then v_event.next_product := v_text;
            when 'started' then v_event.started_at := headroom.store_event_instant(v_field, v_text);
            when 'expires' then v_event.expires_at := headroom.store_event_instant(v_field, v_text);
            when 'grace_until' then v_event.grace_until := headroom.store_event_instant(v_field, v_text);
            when 'anchor' then v_event.anchor_day := v_text::smallint;
            when 'environment' then v_event.environment := v_text;
        end case;
    end loop;
    v_event.received_at := headroom.now();
    return v_event;
end
$$;

create function headroom.is_store_event_kind(p_kind text) returns boolean
    language sql immutable parallel safe
    return p_kind in (
        'purchased', 'renewed', 'cancelled', 'uncancelled', 'grace_period', 'billing_retry', 'expired', 'revoked',
        'reinstated', 'product_changed', 'extended'
    );

-- Refuses an event whose fields do not make sense together, or that names a plan which is not there.
create function headroom.check_store_event(p_event headroom.store_events) returns void
    language plpgsql stable set search_path = pg_catalog
as $$
declare
    v_missing constant text := case
        when p_event.event_id is null then 'id'
        when p_event.source is null then 'source'
        when p_event.kind is null then 'kind'
        when p_event.event_at is null then 'at'
        when not headroom.is_store_event_kind(p_event.kind) then null
        when p_event.original_transaction_id is null then 'transaction'
        when p_event.kind = 'purchased' and p_event.plan is null then 'plan'
        when p_event.kind in ('renewed', 'extended') and p_event.expires_at is null then 'expires'
    end;
    v_stray constant text := case
        when not headroom.is_store_event_kind(p_event.kind) then null
        when p_event.grace_until is not null and p_event.kind not in ('grace_period', 'billing_retry')
            then 'grace_until'
        when p_event.kind = 'product_changed' then null
        when p_event.next_plan is not null then 'next_plan'
        when p_event.next_product is not null then 'next_product'
    end;
    v_plan text;
begin
    if v_missing is not null then
        raise exception '% is missing', quote_literal(v_missing)
            using errcode = 'null_value_not_allowed', hint = case v_missing
                when 'plan' then 'A purchase says which plan was bought.'
                when 'expires' then 'A renewal and an extension say until when.'
                else 'Each event has an id, a source, a kind, and at, the instant at which it happened.'
            end;
    elsif v_stray is not null then
        raise exception '% has no meaning in an event of kind %', quote_literal(v_stray), quote_literal(p_event.kind)
            using errcode = 'invalid_parameter_value', hint = case v_stray
                when 'grace_until' then 'It belongs to grace_period.' else 'It belongs to product_changed.'
            end;
    elsif p_event.event_at > headroom.now() + interval '1 day' then
        -- It would outrank all that really happens until then.
        raise exception '''at'' is in the future' using errcode = 'invalid_parameter_value',
            hint = 'It is when the event happened; the database''s clock says ' || headroom.now() || '.';
    elsif p_event.expires_at < p_event.started_at then
        raise exception '''expires'' is before ''started''' using errcode = 'invalid_parameter_value';
    elsif p_event.original_transaction_id in ('operator', 'first message') then
        -- The rows of set_plan and of a first message go by these names.
        raise exception '''transaction'' is a name that Headroom itself uses' using errcode = 'invalid_parameter_value';
    end if;
    foreach v_plan in array array[p_event.plan, p_event.next_plan] loop
        if v_plan is not null and not exists (select from headroom.plans as plans where plans.plan = v_plan) then
            raise exception 'there is no plan %', quote_literal(v_plan)
                using errcode = 'no_data_found', hint = 'select plan from headroom.plans lists them.';
        end if;
    end loop;
end
$$;

-- Folding -------------------------------------------------------------------------------------------------------------

-- A purchase or a renewal: what was paid for, with everything forgotten that a payment mends, an earlier refund too.
create function headroom.fold_payment(
    p_subscription headroom.subscriptions, p_event headroom.store_events
) returns headroom.subscriptions
    language plpgsql stable set search_path = pg_catalog
as $$
declare
    v_row headroom.subscriptions := p_subscription;
    v_cycle_before text;
    v_cycle text;
begin
    v_row.plan := coalesce(p_event.plan, v_row.next_plan, v_row.plan);
    v_row.product := coalesce(p_event.product, v_row.next_product, v_row.product);
    select plans.cycle into v_cycle from headroom.plans as plans where plans.plan = v_row.plan;
    if v_row.plan <> p_subscription.plan then
        select plans.cycle into v_cycle_before from headroom.plans as plans where plans.plan = p_subscription.plan;
    end if;
    -- A trial that becomes a subscription begins like one that is bought.
    if p_event.kind = 'purchased' or (v_cycle_before = 'trial' and v_cycle <> 'trial') then
        v_row.started_at := coalesce(p_event.started_at, p_event.event_at);
        if v_cycle = 'monthly' then
            v_row.anchor_day := extract(day from v_row.started_at at time zone 'UTC');
        end if;
    elsif v_row.started_at is null then
        v_row.started_at := coalesce(p_event.started_at, p_event.event_at);
        if v_cycle = 'monthly' and p_event.started_at is not null then
            v_row.anchor_day := extract(day from v_row.started_at at time zone 'UTC');
        end if;
    end if;
    v_row.expires_at := p_event.expires_at;
    v_row.grace_until := null;
    v_row.billing_issue_at := null;
    v_row.unsubscribed_at := null;
    v_row.revoked_at := null;
    v_row.next_plan := null;
    v_row.next_product := null;
    return v_row;
end
$$;

-- One step of the fold: the subscription after an event that happened after all that are in it already. started_at is
-- null until a payment was seen; until then every event that tells the end is believed.
create function headroom.fold_event(
    p_subscription headroom.subscriptions, p_event headroom.store_events
) returns headroom.subscriptions
    language plpgsql stable set search_path = pg_catalog
as $$
declare
    v_row headroom.subscriptions := p_subscription;
    v_ends_at timestamptz;
begin
    if v_row.started_at is null then
        v_row.expires_at := coalesce(v_row.expires_at, p_event.expires_at);
    end if;
    case p_event.kind
        when 'purchased', 'renewed' then
            v_row := headroom.fold_payment(v_row, p_event);
        when 'cancelled' then
            -- The end in it can be later than what is known, where a renewal got lost, and never takes anything back.
            v_row.expires_at := greatest(v_row.expires_at, p_event.expires_at);
            v_row.unsubscribed_at := p_event.event_at;
        when 'uncancelled' then
            v_row.expires_at := greatest(v_row.expires_at, p_event.expires_at);
            v_row.unsubscribed_at := null;
        when 'grace_period' then
            -- Without a date, that of an earlier notice of the same issue holds; else 16 days after the end.
            v_row.grace_until := coalesce(
                p_event.grace_until,
                case when v_row.grace_until > p_event.event_at then v_row.grace_until end,
                case when v_row.expires_at is null then p_event.event_at + interval '16 days' end
            );
            v_row.billing_issue_at := coalesce(v_row.billing_issue_at, p_event.event_at);
        when 'billing_retry' then
            -- No grace any more; what is left of the paid time stays.
            v_row.grace_until := least(v_row.grace_until, p_event.grace_until, p_event.event_at);
            v_row.billing_issue_at := coalesce(v_row.billing_issue_at, p_event.event_at);
        when 'expired' then
            v_ends_at := coalesce(p_event.expires_at, p_event.event_at);
            -- An end before that which is known is of a time that was paid for again since.
            if (v_ends_at < v_row.expires_at) is not true then
                v_row.expires_at := v_ends_at;
                v_row.grace_until := null;
                v_row.billing_issue_at := null;
            end if;
        when 'revoked' then
            v_row.revoked_at := coalesce(v_row.revoked_at, p_event.event_at);
        when 'reinstated' then
            v_row.revoked_at := null;
        when 'extended' then
            -- A subscription without an end is not given one.
            if v_row.started_at is null or v_row.expires_at is not null then
                v_row.expires_at := greatest(v_row.expires_at, p_event.expires_at);
            end if;
        when 'product_changed' then
            if p_event.plan is not null then
                v_row.plan := p_event.plan;
                v_row.product := coalesce(p_event.product, v_row.product);
                v_row.expires_at := coalesce(p_event.expires_at, v_row.expires_at);
            end if;
            v_row.next_plan := p_event.next_plan;
            v_row.next_product := p_event.next_product;
    end case;
    v_row.plan := coalesce(v_row.plan, p_event.plan);
    v_row.product := coalesce(v_row.product, p_event.product);
    v_row.anchor_day := coalesce(p_event.anchor_day, v_row.anchor_day);
    v_row.environment := coalesce(p_event.environment, v_row.environment);
    v_row.event_at := p_event.event_at;
    return v_row;
end
$$;

-- set_plan says all about a user: what stores told until then, or tell later of the time before, is without effect.
create function headroom.is_in_force(p_event headroom.store_events, p_declared_at timestamptz) returns boolean
    language sql immutable parallel safe
    return p_declared_at is null or ((p_event).event_at >= p_declared_at and (p_event).received_at >= p_declared_at);

-- Writes what follows from all events of a user that are in force: a row per transaction, and in the subscriber's row
-- the anchor day, the previous plan and the start of a trial. True when that changed anything.
--
-- The caller holds the subscriber's row for update.
create function headroom.fold_store_events(p_user_id uuid) returns boolean
    language plpgsql set search_path = pg_catalog
as $$
declare
    v_subscriber headroom.subscribers;
    v_event headroom.store_events;
    v_rows headroom.subscriptions[] := '{}';
    v_transactions text[] := '{}';
    v_place integer;
    v_before headroom.subscriptions;
    v_row headroom.subscriptions;
    v_plan text;
    v_cycle text;
    v_anchor_day smallint;
    v_previous_plan text;
    v_trial_started_at timestamptz;
    v_changes bigint;
    v_changed_subscribers bigint;
begin
    select * into strict v_subscriber from headroom.subscribers as subscriber where subscriber.user_id = p_user_id;
    v_anchor_day := v_subscriber.anchor_day;
    v_trial_started_at := v_subscriber.trial_started_at;
    v_previous_plan := v_subscriber.declared_previous_plan;
    select subscription.plan into v_plan
    from headroom.subscriptions as subscription
    join headroom.plans as plans on plans.plan = subscription.plan and plans.cycle = 'monthly'
    where subscription.user_id = p_user_id and subscription.original_transaction_id = 'operator';

    for v_event in
        select * from headroom.store_events as events
        where events.user_id = p_user_id and headroom.is_store_event_kind(events.kind)
            and headroom.is_in_force(events, v_subscriber.declared_at)
        order by events.event_at, events.source collate "C", events.event_id collate "C"
    loop
        v_place := array_position(v_transactions, v_event.original_transaction_id);
        if v_place is null then
            v_transactions := v_transactions || v_event.original_transaction_id;
            v_place := cardinality(v_transactions);
            v_before := null;
            v_before.user_id := p_user_id;
            v_before.original_transaction_id := v_event.original_transaction_id;
        else
            v_before := v_rows[v_place];
        end if;
        v_row := headroom.fold_event(v_before, v_event);
        v_rows[v_place] := v_row;

        if v_row.anchor_day is not null and (
            v_row.anchor_day is distinct from v_before.anchor_day or v_event.anchor_day is not null
            or v_event.kind = 'purchased'
        ) then
            v_anchor_day := v_row.anchor_day;
        end if;
        if v_row.plan is not null and (v_row.plan is distinct from v_before.plan or v_event.kind = 'purchased') then
            select plans.cycle into v_cycle from headroom.plans as plans where plans.plan = v_row.plan;
            if v_cycle = 'monthly' then
                if v_plan <> v_row.plan then
                    v_previous_plan := v_plan;
                end if;
                v_plan := v_row.plan;
            elsif v_cycle = 'trial' then
                v_trial_started_at := least(v_trial_started_at, v_row.started_at);
            end if;
        end if;
    end loop;

    insert into headroom.subscriptions as subscription
    select
        folded.user_id, folded.original_transaction_id, folded.plan,
        -- A trial is had once. Another goes on in the first: it ends with it, and shows its days.
        case when is_repeated then v_trial_started_at else folded.started_at end,
        case when is_repeated then v_subscriber.trial_ends_at else folded.expires_at end,
        folded.grace_until, folded.billing_issue_at, folded.unsubscribed_at, folded.revoked_at, folded.product,
        folded.next_plan, folded.next_product, folded.environment, folded.event_at, folded.anchor_day
    from unnest(v_rows) as folded
    join headroom.plans as plans on plans.plan = folded.plan
    cross join lateral (
        select plans.cycle = 'trial' and coalesce(folded.started_at > v_trial_started_at, false)
    ) as trial (is_repeated)
    on conflict (user_id, original_transaction_id) do update
    set plan = excluded.plan, started_at = excluded.started_at, expires_at = excluded.expires_at,
        grace_until = excluded.grace_until, billing_issue_at = excluded.billing_issue_at,
        unsubscribed_at = excluded.unsubscribed_at, revoked_at = excluded.revoked_at, product = excluded.product,
        next_plan = excluded.next_plan, next_product = excluded.next_product, environment = excluded.environment,
        event_at = excluded.event_at, anchor_day = excluded.anchor_day
    where subscription.* is distinct from excluded.*;
    get diagnostics v_changes = row_count;

    update headroom.subscribers as subscriber
    set anchor_day = v_anchor_day, previous_plan = v_previous_plan, trial_started_at = v_trial_started_at
    where subscriber.user_id = p_user_id
        and (subscriber.anchor_day, subscriber.previous_plan, subscriber.trial_started_at)
            is distinct from (v_anchor_day, v_previous_plan, v_trial_started_at);
    get diagnostics v_changed_subscribers = row_count;
    return v_changes + v_changed_subscribers > 0;
end
$$;

-- Terms ---------------------------------------------------------------------------------------------------------------

-- Derives a user's terms at p_at. p_unknown_users says what becomes of a user without a subscription: trial, free or
-- deny.
--
-- As before, but for which of several subscriptions counts, and that a trial which was cancelled still ends as a trial.
--
-- Procedural, with scalars and few statements, because each user whose row cannot be used passes here: as one query it
-- took ten times as long to plan as to run, and with the states as nested expressions twice as long as this.
create or replace function headroom.terms_of(
    p_user_id uuid, p_at timestamptz, p_unknown_users text
) returns headroom.terms
    language plpgsql stable
as $$
declare
    v_subscriber headroom.subscribers;
    v_held record;
    v_terms headroom.terms;
    v_state text;
    v_lapse text;
    v_ends_at timestamptz;
    v_rank bigint;
    v_best_rank bigint;
    v_best_name text;
    v_changes_at timestamptz := 'infinity';
    v_month date;
    v_anchor_day integer;
    v_trial_started_at timestamptz;
    v_trial_ends_at timestamptz;
begin
    select * into v_subscriber from headroom.subscribers where user_id = p_user_id;
    v_terms.previous_plan := v_subscriber.previous_plan;
    v_trial_started_at := v_subscriber.trial_started_at;
    v_trial_ends_at := v_subscriber.trial_ends_at;
    if v_subscriber.user_id is null and p_unknown_users = 'trial' then
        select
            min(spent.trial_started_at), min(spent.trial_ends_at),
            sum(spent.messages) filter (where spent.plan = 'trial')
        into v_trial_started_at, v_trial_ends_at, v_terms.spent_messages
        from headroom.spent_trials as spent
        where spent.digest = (
            select headroom.digest_of(p_user_id, secrets) from headroom.secrets where secrets.name = 'spent trials'
        );
    end if;

    -- A plan and the revision of plans come out of one statement, so of one snapshot: terms from before an edit of the
    -- plan never carry the revision from after it.
    for v_held in
        select
            true as is_known, subscription.original_transaction_id as name, plans.plan, plans.cycle, plans.allowance,
            plans.trial_days, revised.revision, subscription.started_at, subscription.expires_at,
            subscription.grace_until, subscription.billing_issue_at, subscription.unsubscribed_at,
            subscription.revoked_at
        from headroom.subscriptions as subscription
        join headroom.plans as plans on plans.plan = subscription.plan
        cross join headroom.plan_revision as revised
        where subscription.user_id = p_user_id
        union all
        -- Nobody told us about this user: a trial that starts now, the free plan, or nothing.
        select
            false, null, plans.plan, plans.cycle, plans.allowance, plans.trial_days, revised.revision,
            coalesce(v_trial_started_at, p_at), case plans.cycle when 'trial' then v_trial_ends_at end, null, null,
            null, null
        from headroom.plans as plans
        cross join headroom.plan_revision as revised
        where plans.plan = case p_unknown_users when 'trial' then 'trial' else 'free' end
            and not exists (select from headroom.subscriptions where user_id = p_user_id)
    loop
        -- Several states may hold: revoked comes first, then a billing issue, then cancelled, then active. Intervals
        -- are half-open: at expires_at itself access is over.
        v_lapse := null;
        v_ends_at := v_held.expires_at;
        if v_held.cycle = 'trial' then
            v_ends_at := coalesce(v_ends_at, v_held.started_at + make_interval(hours => 24 * v_held.trial_days));
        elsif v_held.billing_issue_at is not null then
            -- The store's date counts; 16 days after expiry where it gives none.
            v_ends_at := greatest(v_ends_at, coalesce(v_held.grace_until, v_ends_at + interval '16 days'));
        end if;
        if v_held.revoked_at <= p_at then
            v_state := 'revoked';
            v_lapse := 'revoked';
        elsif v_held.cycle = 'trial' then
            v_state := 'trial';
            if p_at >= v_ends_at then
                v_lapse := 'trial_ended';
                -- Somebody ended it; it did not run out. Who cancels a trial before that has it to its end.
                if v_held.unsubscribed_at >= v_ends_at then
                    v_state := 'expired';
                    v_lapse := 'expired';
                end if;
            end if;
        elsif v_held.billing_issue_at is not null then
            if p_at < v_ends_at then
                v_state := 'grace_period';
            else
                v_state := 'billing_retry';
                v_lapse := 'billing_retry';
            end if;
        elsif v_held.expires_at <= p_at then
            v_state := 'expired';
            v_lapse := 'expired';
        elsif v_held.cycle = 'lifetime' then
            v_state := 'free';
            if not v_held.is_known and p_unknown_users = 'deny' then
                v_lapse := 'no_subscription';
            end if;
        elsif v_held.unsubscribed_at is not null then
            v_state := 'cancelled';
        else
            v_state := 'active';
        end if;
        -- Any of a user's subscriptions that changes may change which of them counts.
        if v_ends_at > p_at then
            v_changes_at := least(v_changes_at, v_ends_at);
        end if;
        if v_held.revoked_at > p_at then
            v_changes_at := least(v_changes_at, v_held.revoked_at);
        end if;

        -- Access over any of the user's subscriptions: who holds two products and loses one keeps the other. Of those
        -- that give access the largest allowance counts, or buying more would give less. Between equals, and without
        -- access, a refund comes first, then a billing issue, then a cancellation. A trial counts only when nothing was
        -- ever bought, or a refund would bring it back; the free plan only when there is nothing else.
        v_rank := 100000000000 * case
                when v_held.plan = 'free' then 4
                when v_held.cycle = 'trial' then 2 + (v_lapse is not null)::integer
                else (v_lapse is not null)::integer
            end
            + case
                when v_lapse is null then 10 * (2147483647 - coalesce(v_held.allowance, 2147483647))::bigint
                else 0
            end
            + case v_state
                when 'revoked' then 0 when 'billing_retry' then 1 when 'grace_period' then 1 when 'cancelled' then 2
                when 'free' then 4 else 3
            end;
        -- Of those that are alike, the one that ends last; never the one that was read first.
        if v_best_rank is null or v_rank < v_best_rank
            or (v_rank = v_best_rank
                and (coalesce(v_ends_at, 'infinity'), v_held.name)
                    > (coalesce(v_terms.expires_at, 'infinity'), v_best_name))
        then
            v_best_rank := v_rank;
            v_best_name := v_held.name;
            v_terms.is_known := v_held.is_known;
            v_terms.plan := v_held.plan;
            v_terms.cycle := v_held.cycle;
            v_terms.state := v_state;
            v_terms.lapse := v_lapse;
            v_terms.allowance := case v_lapse when 'no_subscription' then 0 else v_held.allowance end;
            v_terms.started_at := v_held.started_at;
            v_terms.expires_at := v_ends_at;
            v_terms.plan_revision := v_held.revision;
        end if;
    end loop;

    if v_terms.plan is null then
        raise exception 'headroom.plans has no plan named %, which users without a subscription are on',
            case p_unknown_users when 'trial' then 'trial' else 'free' end
            using hint = 'Insert it, or start the service with another --unknown-users.';
    end if;
    v_terms.usable_until := v_changes_at;
    if v_terms.cycle <> 'monthly' then
        v_terms.billing_period := v_terms.plan;
        v_terms.started_at := coalesce(v_terms.started_at, p_at);
        return v_terms;
    end if;
    v_anchor_day := coalesce(v_subscriber.anchor_day, 1);
    v_month := headroom.cycle_month(p_at, v_anchor_day);
    -- A period never goes back: when a later anchor day, or a clock set back, would name the month before one that
    -- already has a row, that row's month stays.
    if exists (
        select from public.message_usage as usage
        where usage.user_id = p_user_id
            and usage.billing_period = headroom.month_label((v_month + interval '1 month')::date)
    ) then
        v_month := (v_month + interval '1 month')::date;
    end if;
    v_terms.billing_period := headroom.month_label(v_month);
    v_terms.started_at := headroom.cycle_start(v_month, v_anchor_day);
    v_terms.resets_at := headroom.cycle_start((v_month + interval '1 month')::date, v_anchor_day);
    v_terms.usable_until := least(v_changes_at, v_terms.resets_at);
    if v_terms.lapse is not null then
        v_terms.previous_plan := v_terms.plan;
    end if;
    return v_terms;
end
$$;

-- Applying ------------------------------------------------------------------------------------------------------------

-- What the audit log keeps when an event changes something: what the user has now, and the inputs of the transaction.
create function headroom.store_event_record(
    p_terms headroom.terms, p_subscriber headroom.subscribers, p_subscription headroom.subscriptions
) returns jsonb
    language sql stable
    return case when (p_terms).is_known or (p_subscription).user_id is not null then
        coalesce(headroom.plan_record(p_terms, p_subscriber), '{}') || pg_catalog.jsonb_strip_nulls(
            pg_catalog.jsonb_build_object(
                'transaction', (p_subscription).original_transaction_id,
                'bought', (p_subscription).plan,
                'product', (p_subscription).product,
                'paid_until', headroom.instant_text((p_subscription).expires_at),
                'grace_until', headroom.instant_text((p_subscription).grace_until),
                'billing_issue', headroom.instant_text((p_subscription).billing_issue_at),
                'unsubscribed', headroom.instant_text((p_subscription).unsubscribed_at),
                'revoked', headroom.instant_text((p_subscription).revoked_at),
                'next_plan', (p_subscription).next_plan,
                'next_product', (p_subscription).next_product
            )
        )
    end;

-- For the story of a user: an event that concerns a subscription, and yet had no effect.
create function headroom.record_store_event(p_event headroom.store_events, p_outcome text) returns void
    language sql
begin atomic
    select headroom.record_change(
        (p_event).user_id, null, 'store_event', null,
        jsonb_build_object(
            'happened', headroom.instant_text((p_event).event_at), 'outcome', p_outcome,
            'transaction', (p_event).original_transaction_id
        ),
        (p_event).kind || ' told by ' || (p_event).source, (p_event).event_id
    );
end;

-- What apply_store_event answers: what became of the event, and what its user has now.
create function headroom.store_event_answer(p_outcome text, p_user_id uuid) returns jsonb
    language plpgsql stable set search_path = pg_catalog
as $$
declare
    v_terms headroom.terms;
begin
    if p_user_id is not null then
        v_terms := headroom.terms_of(p_user_id, headroom.now(), headroom.unknown_users());
    end if;
    if v_terms.is_known is not true then
        return jsonb_strip_nulls(jsonb_build_object('outcome', p_outcome, 'user', p_user_id));
    end if;
    return jsonb_strip_nulls(jsonb_build_object(
        'outcome', p_outcome,
        'user', p_user_id,
        'plan', v_terms.plan,
        'state', v_terms.state,
        'access', v_terms.lapse is null,
        'reason', v_terms.lapse,
        'expires', headroom.instant_text(v_terms.expires_at),
        'previous_plan', v_terms.previous_plan
    ));
end
$$;

-- Keeps an event; false when it is there already.
create function headroom.keep_store_event(p_event headroom.store_events, p_outcome text) returns boolean
    language plpgsql set search_path = pg_catalog
as $$
declare
    v_event headroom.store_events := p_event;
begin
    v_event.outcome := p_outcome;
    insert into headroom.store_events select v_event.* on conflict (source, event_id) do nothing;
    return found;
end
$$;

-- Applies one event that a store told, once however often it is told: {"outcome", "user", "plan", "state", "access",
-- "reason", "expires", "previous_plan"}. The event is kept in the transaction of its effect. docs/reference.md has the
-- fields, the kinds and the outcomes.
create function public.apply_store_event(p_event jsonb) returns jsonb
    language plpgsql set search_path = pg_catalog
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_event headroom.store_events := headroom.read_store_event(p_event);
    v_subscriber headroom.subscribers;
    v_subscription headroom.subscriptions;
    v_before jsonb;
    v_outcome text;
begin
    perform headroom.check_store_event(v_event);
    if v_event.user_id is null then
        select events.user_id into v_event.user_id from headroom.store_events as events
        where events.original_transaction_id = v_event.original_transaction_id and events.user_id is not null
        order by events.event_at desc, events.source, events.event_id
        limit 1;
    end if;
    if exists (
        select from headroom.store_events as events
        where events.source = v_event.source and events.event_id = v_event.event_id
    ) then
        return headroom.store_event_answer('duplicate', v_event.user_id);
    end if;
    if not headroom.is_store_event_kind(v_event.kind) then
        -- Kept with the user only where the user is known, because who is not can not be forgotten either.
        perform from headroom.subscribers as subscriber where subscriber.user_id = v_event.user_id for key share;
        if not found then
            v_event.user_id := null;
        end if;
        v_outcome := case when headroom.keep_store_event(v_event, 'ignored') then 'ignored' else 'duplicate' end;
        return headroom.store_event_answer(v_outcome, v_event.user_id);
    elsif v_event.user_id is null then
        raise exception 'the user of this transaction is not known' using errcode = 'no_data_found',
            hint = 'Pass ''user'', or send the event again when one that names the user was applied.';
    end if;

    -- One event of a user at a time, and no message resolves the user's terms meanwhile.
    insert into headroom.subscribers (user_id) values (v_event.user_id) on conflict (user_id) do nothing;
    select * into strict v_subscriber from headroom.subscribers as subscriber
    where subscriber.user_id = v_event.user_id for update;
    if not headroom.is_in_force(v_event, v_subscriber.declared_at) then
        v_outcome := 'duplicate';
        if headroom.keep_store_event(v_event, 'outdated') then
            v_outcome := 'outdated';
            perform headroom.record_store_event(v_event, v_outcome);
        end if;
        return headroom.store_event_answer(v_outcome, v_event.user_id);
    end if;
    if not exists (
        select from headroom.store_events as events
        where events.user_id = v_event.user_id and headroom.is_store_event_kind(events.kind)
            and headroom.is_in_force(events, v_subscriber.declared_at)
    ) then
        update headroom.subscribers as subscriber set declared_previous_plan = subscriber.previous_plan
        where subscriber.user_id = v_event.user_id
            and subscriber.declared_previous_plan is distinct from subscriber.previous_plan;
    end if;
    select * into v_subscription from headroom.subscriptions as subscription
    where subscription.user_id = v_event.user_id
        and subscription.original_transaction_id = v_event.original_transaction_id;
    v_before := headroom.store_event_record(
        headroom.terms_of(v_event.user_id, v_now, 'deny'), v_subscriber, v_subscription
    );
    if not headroom.keep_store_event(v_event, 'applied') then
        return headroom.store_event_answer('duplicate', v_event.user_id);
    end if;
    v_outcome := 'applied';
    if headroom.fold_store_events(v_event.user_id) then
        -- The next message of this user finds no usable row, resolves the new terms and keeps the count.
        update public.message_usage as usage
        set usable_until = '-infinity'
        where usage.user_id = v_event.user_id and usage.usable_until > '-infinity';
        select * into strict v_subscriber from headroom.subscribers as subscriber
        where subscriber.user_id = v_event.user_id;
        select * into v_subscription from headroom.subscriptions as subscription
        where subscription.user_id = v_event.user_id
            and subscription.original_transaction_id = v_event.original_transaction_id;
        perform headroom.record_change(
            v_event.user_id, null, 'store_event', v_before,
            headroom.store_event_record(
                headroom.terms_of(v_event.user_id, v_now, 'deny'), v_subscriber, v_subscription
            ),
            v_event.kind || ' told by ' || v_event.source, v_event.event_id
        );
    end if;
    if v_subscription.user_id is null then
        -- No event of this transaction has told the plan yet.
        v_outcome := 'waiting';
        update headroom.store_events as events set outcome = v_outcome
        where events.source = v_event.source and events.event_id = v_event.event_id;
        perform headroom.record_store_event(v_event, v_outcome);
    end if;
    return headroom.store_event_answer(v_outcome, v_event.user_id);
end
$$;
