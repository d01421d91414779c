-- What stores send, as they send it: each notification kept once, the user found, products mapped to plans, and every
-- effect in the transaction that keeps it.
--
-- Arrival has no order, so nothing here is decided by it. What a notification says of persons (who bought a transaction,
-- which ids are one person, to whom a subscription went) is kept as a fact with the instant at which it happened; whose a
-- subscription is follows from all the facts anew whenever one is added, as the subscription itself follows from all its
-- events (docs/decisions/0015-facts-about-owners.md).

-- Products ------------------------------------------------------------------------------------------------------------

create table headroom.store_products (
    source text not null,
    product text not null,
    plan text references headroom.plans on update cascade,
    trial_plan text not null default 'trial' references headroom.plans on update cascade,
    intro_plan text references headroom.plans on update cascade,
    messages integer,
    primary key (source, product),
    constraint source_is_a_name check (source ~ '^[a-z][a-z0-9_]{0,31}$'),
    constraint product_is_one_short_line check (product ~ '^[^[:cntrl:]]{1,255}$'),
    constraint product_is_for_something check (plan is not null or messages is not null),
    constraint messages_are_0_to_1000000 check (messages between 0 and 1000000)
);
comment on table headroom.store_products is 'Which plan a store''s product is. Edit freely; what comes next follows.';
comment on column headroom.store_products.trial_plan is 'The plan while a trial of the product runs.';
comment on column headroom.store_products.intro_plan is 'The plan while an introductory offer runs; null is plan.';
comment on column headroom.store_products.messages is
    'Of a product that is bought once: messages granted for each. 0: it is known, and grants nothing.';

-- Whoever changes what a product is changes what people get: it is on record as a change by hand is.
create function headroom.record_product_mapping() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform headroom.record_change(
        null, null, lower(tg_op), case when tg_op <> 'INSERT' then to_jsonb(old) end,
        case when tg_op <> 'DELETE' then to_jsonb(new) end
    );
    return null;
end
$$;
create trigger record_product_mapping after insert or update or delete on headroom.store_products
    for each row execute function headroom.record_product_mapping();

-- Maps a product, or maps it anew; null for p_trial_plan is 'trial'. Returns how many kept notifications failed for the
-- lack of it: headroom events replay --failed applies them.
create function headroom.map_product(
    p_source text, p_product text, p_plan text, p_trial_plan text default null, p_intro_plan text default null,
    p_messages integer default null
) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_plan text;
begin
    if p_source is null or p_product is null then
        raise exception 'p_source and p_product must not be null' using errcode = 'null_value_not_allowed';
    elsif p_source !~ '^[a-z][a-z0-9_]{0,31}$' or p_product !~ '^[^[:cntrl:]]{1,255}$' then
        raise exception 'p_source or p_product does not have the form of one'
            using errcode = 'invalid_parameter_value',
                hint = 'Sources are revenuecat and appstore; a product has 1 to 255 characters.';
    elsif p_plan is null and p_messages is null then
        raise exception 'a product is for a plan, or for messages' using errcode = 'null_value_not_allowed';
    elsif p_messages not between 0 and 1000000 then
        raise exception 'p_messages must be 0 to 1000000' using errcode = 'invalid_parameter_value';
    end if;
    foreach v_plan in array array[p_plan, coalesce(p_trial_plan, 'trial'), p_intro_plan] loop
        if v_plan is not null and not exists (select from headroom.plans as plans where plans.plan = v_plan) then
            raise exception 'there is no plan %', quote_literal(v_plan)
                using errcode = 'no_data_found', hint = 'select plan from headroom.plans lists them.';
        end if;
    end loop;
    insert into headroom.store_products as products (source, product, plan, trial_plan, intro_plan, messages)
    values (p_source, p_product, p_plan, coalesce(p_trial_plan, 'trial'), p_intro_plan, p_messages)
    on conflict (source, product) do update
    set plan = excluded.plan, trial_plan = excluded.trial_plan, intro_plan = excluded.intro_plan,
        messages = excluded.messages
    where (products.plan, products.trial_plan, products.intro_plan, products.messages)
        is distinct from (excluded.plan, excluded.trial_plan, excluded.intro_plan, excluded.messages);
    return (
        select count(*) from headroom.store_notifications as notifications
        where notifications.source = p_source and notifications.outcome = 'failed'
            and notifications.lacks = 'product' and 'product:' || p_product = any (notifications.mentions)
    );
end
$$;

-- A product that comes no more. What was applied stays. False when it was not mapped.
create function headroom.unmap_product(p_source text, p_product text) returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    delete from headroom.store_products as products
    where products.source = p_source and products.product = p_product;
    return found;
end
$$;

-- Notifications -------------------------------------------------------------------------------------------------------

-- Instants that coincide are told apart by id, in the "C" collation, so that every database does it alike. It stands where
-- ids are compared and not with the columns: parameters of functions would inherit it, and find no index.

-- Each notification once, for dedup for good; what is in it is blanked when it is old or its user is forgotten.
create table headroom.store_notifications (
    source text not null,
    id text not null,
    type text not null,
    happened_at timestamptz not null,
    received_at timestamptz not null,
    environment text,
    identities text[] not null,
    effects jsonb,
    payload jsonb,
    mentions text[] not null,
    user_id uuid,
    outcome text not null,
    lacks text,
    problem text,
    effect jsonb,
    attempts integer not null,
    applied_at timestamptz,
    primary key (source, id),
    constraint outcome_is_known check (outcome in ('applied', 'waiting', 'outdated', 'ignored', 'failed', 'forgotten')),
    constraint lacks_is_known check (lacks in ('user', 'product')),
    constraint a_failure_has_a_problem check ((outcome = 'failed') = (problem is not null))
);
comment on table headroom.store_notifications is 'What stores sent, each once, with what became of it.';
comment on column headroom.store_notifications.identities is
    'Who it may be, best first: UUIDs, and SHA-256 digests of whatever else a store knows somebody by.';
comment on column headroom.store_notifications.mentions is 'What may mend it: identities, transactions, products.';
comment on column headroom.store_notifications.lacks is 'What a failed one lacks, where that may still come.';
comment on column headroom.store_notifications.effect is 'Where its user stood after it was applied.';
comment on column headroom.store_notifications.payload is
    'What is kept of the store''s own words, for a replay: ids, dates and enumerations.';
create index store_notifications_failed on headroom.store_notifications (source, received_at) where outcome = 'failed';
create index store_notifications_user on headroom.store_notifications (user_id, received_at);
create index store_notifications_mentions on headroom.store_notifications using gin (mentions);
-- Those of which more than that they came is kept, for pruning.
create index store_notifications_kept on headroom.store_notifications (received_at) where effects is not null;

-- Persons -------------------------------------------------------------------------------------------------------------

-- Whose a digest is: as the newest notification says that names it beside a UUID.
create table headroom.store_identities (
    source text not null,
    identity text not null,
    user_id uuid not null,
    told_at timestamptz not null,
    told_by text not null,
    primary key (source, identity)
);
comment on table headroom.store_identities is 'Users by the digest of what a store knows them by.';
create index store_identities_user on headroom.store_identities (user_id);

-- Who a notification says the owner of a transaction is. Also without anybody, to find what waits for a transaction.
create table headroom.store_claims (
    source text not null,
    transaction text not null,
    id text not null,
    at timestamptz not null,
    identities text[] not null,
    primary key (source, transaction, id)
);
comment on table headroom.store_claims is 'Which notification names whom as the owner of which original transaction.';
create index store_claims_notification on headroom.store_claims (source, id);
create index store_claims_identities on headroom.store_claims using gin (identities);

-- All that is of one person becomes another's. Two ids of one person are told in the same way: whatever the others had is
-- the first one's from then on.
create table headroom.store_transfers (
    source text not null,
    id text not null,
    place integer not null,
    at timestamptz not null,
    from_identities text[] not null,
    to_identities text[] not null,
    primary key (source, id, place)
);
comment on table headroom.store_transfers is 'Transfers and aliases, as facts: they concern what comes later, too.';
create index store_transfers_from on headroom.store_transfers using gin (from_identities);
create index store_transfers_to on headroom.store_transfers using gin (to_identities);

-- What follows from those: the persons whose a transaction was, one after the other; the last is its owner.
create table headroom.store_owners (
    source text not null,
    transaction text not null,
    step integer not null,
    person text not null,
    since timestamptz not null,
    told_by text not null,
    is_alias boolean not null default false,
    made_at timestamptz,
    usage jsonb,
    primary key (source, transaction, step)
);
comment on table headroom.store_owners is 'Whose a transaction was and is. Follows from claims, transfers, identities.';
comment on column headroom.store_owners.person is 'A user''s UUID, or the digest of somebody who is not known yet.';
comment on column headroom.store_owners.usage is
    'Of a step from one person to the next: the messages that the one before had counted in the current periods.';
comment on column headroom.store_owners.is_alias is
    'No transaction: an alias, by which the trial of the one before is the next one''s, too.';
create index store_owners_person on headroom.store_owners (person);
create index store_owners_told_by on headroom.store_owners (source, told_by);

-- What is in a user's count that others counted, so that it is neither added twice nor passed on as the user's own.
create table headroom.store_carried_usage (
    user_id uuid not null,
    billing_period text not null,
    generation bigint not null,
    messages integer not null,
    counted integer not null,
    starts_at timestamptz not null,
    ends_at timestamptz not null,
    primary key (user_id, billing_period)
);
comment on table headroom.store_carried_usage is 'Messages that came to a user''s count with a subscription.';
comment on column headroom.store_carried_usage.starts_at is
    'When the period began as it was when they came: a new anchor day moves it and keeps its name.';
comment on column headroom.store_carried_usage.counted is
    'How many of them are in the count: none of those that came before a reset, which generation tells.';

-- One-time purchases of messages: what was bought, and where it was granted.
create table headroom.store_purchases (
    source text not null,
    transaction text not null,
    user_id uuid not null,
    happened_at timestamptz not null,
    messages bigint not null,
    granted integer,
    billing_period text,
    primary key (source, transaction)
);
comment on table headroom.store_purchases is 'Messages bought once; granted and billing_period are null after a refund.';
comment on column headroom.store_purchases.messages is
    'What it grants: what was bought, less what was used before it moved to its month.';
create index store_purchases_user on headroom.store_purchases (user_id);

-- A transfer that came to a user after set_plan brings what happened before set_plan: it is news all the same.
alter table headroom.store_events add column transferred_at timestamptz;
comment on column headroom.store_events.transferred_at is 'When its transaction came to its user from another.';
alter table headroom.subscribers add column declared_anchor_day smallint;
comment on column headroom.subscribers.declared_anchor_day is
    'anchor_day as it was before the first of the store events that are in force.';
-- A transaction whose owner is nobody yet is looked up as well.
drop index headroom.store_events_transaction;
create index store_events_transaction on headroom.store_events (original_transaction_id, event_at);

create or replace function headroom.is_in_force(
    p_event headroom.store_events, p_declared_at timestamptz
) returns boolean
    language sql immutable parallel safe
    return p_declared_at is null
        or ((p_event).event_at >= p_declared_at and (p_event).received_at >= p_declared_at)
        or coalesce((p_event).transferred_at >= p_declared_at, false);

-- Reading -------------------------------------------------------------------------------------------------------------

-- Refuses a list that is none of identities, by the name of its field.
create function headroom.read_store_identities(p_field text, p_value jsonb) returns text[]
    language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
    v_identities text[];
begin
    if p_value is null or jsonb_typeof(p_value) = 'null' then
        return '{}';
    elsif jsonb_typeof(p_value) <> 'array' or jsonb_array_length(p_value) > 256 or exists (
        select from jsonb_array_elements(p_value) as members (value)
        where jsonb_typeof(value) <> 'string'
            or value #>> '{}' !~ '^([0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|sha256:[0-9a-f]{64})$'
    ) then
        raise exception '% must be an array of at most 256 identities', quote_literal(p_field)
            using errcode = 'invalid_parameter_value',
                hint = 'An identity is a UUID, or sha256: and the 64 hexadecimal digits of the digest of anything else.';
    end if;
    select coalesce(array_agg(lower(members.value) order by members.ordinality), '{}') into v_identities
    from jsonb_array_elements_text(p_value) with ordinality as members (value, ordinality);
    return v_identities;
end
$$;

-- Refuses an effect that is not one, so that nothing is kept which could never be applied.
create function headroom.check_store_effect(p_effect jsonb) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_kind constant text := p_effect ->> 'kind';
    v_field text;
    v_value jsonb;
    v_missing text;
begin
    if jsonb_typeof(p_effect) <> 'object' then
        raise exception '''effects'' must be an array of objects' using errcode = 'invalid_parameter_value';
    elsif v_kind is null or not (
        headroom.is_store_event_kind(v_kind) or v_kind in ('granted', 'temporary', 'transferred', 'merged')
    ) then
        raise exception 'an effect''s ''kind'' is missing or not known' using errcode = 'invalid_parameter_value',
            hint = 'Kinds are those of apply_store_event, and granted, temporary, transferred and merged.';
    end if;
    for v_field, v_value in select * from jsonb_each(p_effect) loop
        if not v_field = any (case v_kind
            when 'granted' then array['kind', 'transaction', 'product', 'quantity']
            when 'temporary' then array['kind', 'transaction', 'product', 'expires']
            when 'transferred' then array['kind', 'from', 'to']
            when 'merged' then array['kind', 'identities']
            else array[
                'kind', 'transaction', 'product', 'period', 'next_product', 'started', 'expires', 'grace_until'
            ]
        end) then
            raise exception 'an effect of kind % has no field %', quote_literal(v_kind), quote_literal(left(v_field, 64))
                using errcode = 'invalid_parameter_value';
        elsif jsonb_typeof(v_value) = 'null' then
            continue;
        elsif v_field in ('from', 'to', 'identities') then
            perform headroom.read_store_identities(v_field, v_value);
        elsif v_field = 'quantity' then
            if jsonb_typeof(v_value) <> 'number' or v_value::text !~ '^[1-9][0-9]{0,5}$' then
                raise exception '''quantity'' must be a number from 1 to 999999'
                    using errcode = 'invalid_parameter_value';
            end if;
        elsif jsonb_typeof(v_value) <> 'string' then
            raise exception '% must be a text', quote_literal(v_field) using errcode = 'invalid_parameter_value';
        elsif v_field in ('started', 'expires', 'grace_until') then
            perform headroom.store_event_instant(v_field, v_value #>> '{}');
        elsif v_field = 'period' and v_value #>> '{}' not in ('normal', 'trial', 'intro') then
            raise exception '''period'' must be normal, trial or intro' using errcode = 'invalid_parameter_value';
        elsif v_value #>> '{}' !~ '^[^[:cntrl:]]+$' or length(v_value #>> '{}') > 255 then
            raise exception '% must have 1 to 255 characters, none of them a control character', quote_literal(v_field)
                using errcode = 'invalid_parameter_value';
        end if;
    end loop;
    v_missing := case
        when v_kind = 'transferred' and p_effect -> 'from' is null then 'from'
        when v_kind = 'transferred' and p_effect -> 'to' is null then 'to'
        when v_kind = 'merged' and p_effect -> 'identities' is null then 'identities'
        when v_kind in ('transferred', 'merged') then null
        when p_effect ->> 'transaction' is null then 'transaction'
        when v_kind in ('granted', 'temporary') and p_effect ->> 'product' is null then 'product'
    end;
    if v_missing is not null then
        raise exception '% is missing in an effect of kind %', quote_literal(v_missing), quote_literal(v_kind)
            using errcode = 'null_value_not_allowed';
    end if;
end
$$;

-- The notification with each field in its place, or an error that names the field.
create function headroom.read_store_notification(p_notification jsonb) returns headroom.store_notifications
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_read headroom.store_notifications;
    v_field text;
    v_value jsonb;
    v_text text;
    v_effect jsonb;
begin
    if p_notification is null then
        raise exception 'p_notification is null: pass the notification as a JSON object'
            using errcode = 'null_value_not_allowed';
    elsif jsonb_typeof(p_notification) <> 'object' then
        raise exception 'p_notification must be a JSON object' using errcode = 'invalid_parameter_value';
    end if;
    for v_field, v_value in select * from jsonb_each(p_notification) loop
        v_text := v_value #>> '{}';
        if not v_field = any (array[
            'source', 'id', 'type', 'at', 'environment', 'identities', 'effects', 'payload', 'problem'
        ]) then
            raise exception 'a store notification has no field %', quote_literal(left(v_field, 64))
                using errcode = 'invalid_parameter_value',
                    hint = 'Its fields are source, id, type, at, environment, identities, effects, payload and problem.';
        elsif v_text is null or v_field = 'identities' then
            continue;
        elsif v_field = 'effects' then
            if jsonb_typeof(v_value) <> 'array' or jsonb_array_length(v_value) > 64 then
                raise exception '''effects'' must be an array of at most 64' using errcode = 'invalid_parameter_value';
            end if;
            for v_effect in select * from jsonb_array_elements(v_value) loop
                perform headroom.check_store_effect(v_effect);
            end loop;
        elsif v_field = 'payload' then
            if jsonb_typeof(v_value) <> 'object' or octet_length(v_text) > 65536 then
                raise exception '''payload'' must be an object of at most 65536 bytes'
                    using errcode = 'invalid_parameter_value';
            end if;
        elsif jsonb_typeof(v_value) <> 'string' then
            raise exception '% must be a text', quote_literal(v_field) using errcode = 'invalid_parameter_value';
        elsif v_field = 'source' and v_text !~ '^[a-z][a-z0-9_]{0,31}$' then
            raise exception '''source'' must be lower-case letters, digits and underscores, at most 32'
                using errcode = 'invalid_parameter_value';
        elsif length(v_text) > (case v_field when 'environment' then 32 when 'problem' then 1000 else 255 end)
            or v_text !~ '^[^[:cntrl:]]+$'
        then
            raise exception '% must be one line of 1 to 255 characters', quote_literal(v_field)
                using errcode = 'invalid_parameter_value';
        end if;
    end loop;
    v_field := case
        when p_notification ->> 'source' is null then 'source'
        when p_notification ->> 'id' is null then 'id'
        when p_notification ->> 'type' is null then 'type'
        when p_notification ->> 'at' is null then 'at'
    end;
    if v_field is not null then
        raise exception '% is missing', quote_literal(v_field) using errcode = 'null_value_not_allowed';
    end if;
    v_read.source := p_notification ->> 'source';
    v_read.id := p_notification ->> 'id';
    v_read.type := p_notification ->> 'type';
    v_read.happened_at := headroom.store_event_instant('at', p_notification ->> 'at');
    v_read.received_at := headroom.now();
    v_read.environment := p_notification ->> 'environment';
    v_read.identities := headroom.read_store_identities('identities', p_notification -> 'identities');
    v_read.effects := coalesce(nullif(p_notification -> 'effects', 'null'), '[]');
    v_read.payload := nullif(p_notification -> 'payload', 'null');
    v_read.problem := p_notification ->> 'problem';
    select coalesce(array_agg(distinct mention), '{}') into v_read.mentions
    from (
        select unnest(v_read.identities)
        union all
        select jsonb_array_elements_text(lists.value)
        from jsonb_array_elements(v_read.effects) as effects (value)
        cross join lateral jsonb_each(effects.value) as lists
        where lists.key in ('from', 'to', 'identities') and jsonb_typeof(lists.value) = 'array'
        union all
        select names.prefix || (effects.value ->> names.field)
        from jsonb_array_elements(v_read.effects) as effects (value)
        cross join (
            values ('transaction:', 'transaction'), ('product:', 'product'), ('product:', 'next_product')
        ) as names (prefix, field)
        where effects.value ->> names.field is not null
    ) as mentioned (mention);
    return v_read;
end
$$;

-- Owners --------------------------------------------------------------------------------------------------------------

-- The one whom these identities name: the first UUID, else the user of the first digest that is known, else the first
-- digest, which may become known. Null where they name nobody.
--
-- In plpgsql, here and in headroom.store_notification_answer: it keeps its plans for the length of a connection, where a
-- function in SQL is planned anew in each transaction, which costs more than what it finds.
create function headroom.store_person(p_source text, p_identities text[]) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return coalesce(
        (
            select names.identity from unnest(p_identities) with ordinality as names (identity, place)
            where names.identity not like '%:%'
            order by names.place limit 1
        ),
        (
            select known.user_id::text
            from unnest(p_identities) with ordinality as names (identity, place)
            join headroom.store_identities as known on known.source = p_source and known.identity = names.identity
            order by names.place limit 1
        ),
        p_identities[1]
    );
end
$$;

create function headroom.user_of_person(p_person text) returns uuid
    language sql immutable parallel safe
    return case when p_person not like '%:%' then p_person::uuid end;

-- Whose a transaction was and is, computed from all that was told: a claim says whose it is at its instant, a transfer
-- takes it from who has it then. Nothing here asks when something arrived.
create function headroom.find_store_owners(p_source text, p_transaction text) returns setof headroom.store_owners
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_owner headroom.store_owners;
    v_next record;
    v_at timestamptz := '-infinity';
    v_id text := '';
    v_place integer := -1;
    v_names text[] := '{}';
begin
    v_owner.source := p_source;
    v_owner.transaction := p_transaction;
    v_owner.step := -1;
    v_owner.is_alias := false;
    loop
        -- Most events of a transaction name the same identities: each list is looked up once.
        with persons as materialized (
            select lists.identities, headroom.store_person(p_source, lists.identities) as person
            from (
                select distinct claims.identities from headroom.store_claims as claims
                where claims.source = p_source and claims.transaction = p_transaction
            ) as lists
        )
        select moves.* into v_next
        from (
            select claims.at, claims.id, 0 as place, persons.person
            from headroom.store_claims as claims
            join persons on persons.identities = claims.identities
            where claims.source = p_source and claims.transaction = p_transaction
                and (claims.at, claims.id collate "C", 0) > (v_at, v_id, v_place)
            union all
            select
                transfers.at, transfers.id, transfers.place,
                headroom.store_person(p_source, transfers.to_identities)
            from headroom.store_transfers as transfers
            where transfers.source = p_source and transfers.from_identities && v_names
                and (transfers.at, transfers.id collate "C", transfers.place) > (v_at, v_id, v_place)
        ) as moves
        where moves.person <> coalesce(v_owner.person, '')
        order by moves.at, moves.id collate "C", moves.place
        limit 1;
        exit when not found;
        v_at := v_next.at;
        v_id := v_next.id;
        v_place := v_next.place;
        v_owner.step := v_owner.step + 1;
        v_owner.person := v_next.person;
        v_owner.since := v_at;
        v_owner.told_by := v_id;
        return next v_owner;
        select array_append(coalesce(array_agg(known.identity), '{}'), v_owner.person) into v_names
        from headroom.store_identities as known
        where known.source = p_source and known.user_id = headroom.user_of_person(v_owner.person);
    end loop;
end
$$;

-- Writes down whose a transaction was and is. Returns every user who is concerned: those who were owners, those who are,
-- and those who have an event of it. Steps that were there keep the usage that was noted with them.
--
-- p_claim: the notification, where its claim is the only fact that is new since the last time, else null.
create function headroom.note_store_owners(
    p_source text, p_transaction text, p_claim headroom.store_notifications
) returns uuid[]
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_before headroom.store_owners[];
    v_after headroom.store_owners[];
    v_last headroom.store_owners;
    v_person text;
    v_users uuid[];
begin
    select coalesce(array_agg(owners order by owners.step), '{}') into v_before
    from headroom.store_owners as owners
    where owners.source = p_source and owners.transaction = p_transaction;
    v_last := v_before[cardinality(v_before)];
    v_person := headroom.store_person(p_source, p_claim.identities);
    -- The usual renewal: it names nobody, or who is the owner already, after becoming it. That changes nothing.
    if v_last.person is not null and p_claim.id is not null and (
        v_person is null
        or v_person = v_last.person
            and (p_claim.happened_at, p_claim.id collate "C") > (v_last.since, v_last.told_by)
    ) then
        v_after := v_before;
    else
        select coalesce(array_agg(owners order by owners.step), '{}') into v_after
        from headroom.find_store_owners(p_source, p_transaction) as owners;
    end if;
    if v_before is distinct from v_after
        and (select array_agg(row(step, person, since, told_by) order by step) from unnest(v_before))
        is distinct from (select array_agg(row(step, person, since, told_by) order by step) from unnest(v_after))
    then
        delete from headroom.store_owners as owners
        where owners.source = p_source and owners.transaction = p_transaction;
        insert into headroom.store_owners (source, transaction, step, person, since, told_by, made_at, usage)
        select
            after.source, after.transaction, after.step, after.person, after.since, after.told_by, kept.made_at,
            kept.usage
        from unnest(v_after) as after
        left join unnest(v_after) as giver on giver.step = after.step - 1
        left join lateral (
            select before.made_at, before.usage
            from unnest(v_before) as before
            join unnest(v_before) as giver_before on giver_before.step = before.step - 1
            where before.told_by = after.told_by and before.person = after.person
                and giver_before.person = giver.person
            order by before.step limit 1
        ) as kept on true;
    end if;
    select array_agg(distinct users.user_id) into v_users
    from (
        select headroom.user_of_person(person) from unnest(v_before || v_after)
        union
        select events.user_id from headroom.store_events as events
        where events.source = p_source and events.original_transaction_id = p_transaction
    ) as users (user_id)
    where users.user_id is not null;
    return coalesce(v_users, '{}');
end
$$;

-- Notes that these digests are the user's who stands beside them, unless something newer says otherwise. Returns what is
-- news: the digests, and whose they were before.
create function headroom.learn_store_identities(
    p_source text, p_identities text[], p_at timestamptz, p_id text
) returns text[]
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_user_id uuid;
    v_news text[];
begin
    select names.identity::uuid into v_user_id
    from unnest(p_identities) with ordinality as names (identity, place)
    where names.identity not like '%:%'
    order by names.place limit 1;
    if v_user_id is null then
        return '{}';
    end if;
    select coalesce(array_agg(news.name), '{}') into v_news
    from (
        select unnest(array[names.identity, known.user_id::text, v_user_id::text]) as name
        from unnest(p_identities) as names (identity)
        left join headroom.store_identities as known on known.source = p_source and known.identity = names.identity
        where names.identity like 'sha256:%' and (
            known.user_id is null
            or known.user_id <> v_user_id and (known.told_at, known.told_by collate "C") < (p_at, p_id)
        )
    ) as news
    where news.name is not null;
    insert into headroom.store_identities as known (source, identity, user_id, told_at, told_by)
    select distinct p_source, names.identity, v_user_id, p_at, p_id
    from unnest(p_identities) as names (identity)
    where names.identity like 'sha256:%'
    on conflict (source, identity) do update
    set user_id = excluded.user_id, told_at = excluded.told_at, told_by = excluded.told_by
    where (known.told_at, known.told_by collate "C") < (excluded.told_at, excluded.told_by);
    return v_news;
end
$$;

-- A fact of a day that is not there yet would outrank all that really happens until then.
create function headroom.is_too_early(p_notification headroom.store_notifications) returns boolean
    language sql stable
    return p_notification.happened_at > headroom.now() + interval '1 day';

-- Keeps what a notification says of persons, in place of what it said before, where it is read anew. Gives the
-- transactions whose owner may be another now, and the identities that are news. What comes too early says nothing.
create function headroom.note_store_facts(
    p_notification headroom.store_notifications, out p_transactions text[], out p_news text[]
)
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_source constant text := p_notification.source;
    v_id constant text := p_notification.id;
    v_at constant timestamptz := p_notification.happened_at;
    v_effect jsonb;
    v_place integer := 0;
    v_from text[];
    v_to text[];
    v_names text[] := '{}';
    v_before text[];
    v_is_too_early constant boolean := headroom.is_too_early(p_notification);
begin
    p_news := case
        when v_is_too_early then '{}'
        else headroom.learn_store_identities(v_source, p_notification.identities, v_at, v_id)
    end;
    with gone as (
        delete from headroom.store_claims as claims where claims.source = v_source and claims.id = v_id
        returning claims.transaction
    )
    select coalesce(array_agg(gone.transaction), '{}') into p_transactions from gone;
    select p_transactions || coalesce(array_agg(owners.transaction), '{}') into v_before
    from headroom.store_owners as owners
    where owners.source = v_source and owners.told_by = v_id and not owners.is_alias and exists (
        select from headroom.store_transfers as transfers
        where transfers.source = v_source and transfers.id = v_id
    );
    delete from headroom.store_transfers as transfers where transfers.source = v_source and transfers.id = v_id;

    for v_effect in
        select * from jsonb_array_elements(case when v_is_too_early then '[]' else p_notification.effects end)
    loop
        v_place := v_place + 1;
        if v_effect ->> 'kind' in ('transferred', 'merged') then
            v_from := headroom.read_store_identities('from', coalesce(v_effect -> 'from', v_effect -> 'identities'));
            v_to := headroom.read_store_identities('to', coalesce(v_effect -> 'to', v_effect -> 'identities'));
            p_news := p_news || headroom.learn_store_identities(v_source, v_to, v_at, v_id);
            if v_effect ->> 'kind' = 'transferred' then
                p_news := p_news || headroom.learn_store_identities(v_source, v_from, v_at, v_id);
            end if;
            insert into headroom.store_transfers (source, id, place, at, from_identities, to_identities)
            values (v_source, v_id, v_place, v_at, v_from, v_to);
            v_names := v_names || v_from;
        elsif v_effect ->> 'kind' <> 'granted' then
            insert into headroom.store_claims (source, transaction, id, at, identities)
            values (v_source, v_effect ->> 'transaction', v_id, v_at, p_notification.identities)
            on conflict (source, transaction, id) do nothing;
            p_transactions := p_transactions || (v_effect ->> 'transaction');
        end if;
    end loop;
    p_transactions := p_transactions || v_before;

    if cardinality(p_news) > 0 then
        select p_transactions || coalesce(array_agg(claims.transaction), '{}') into p_transactions
        from headroom.store_claims as claims
        where claims.source = v_source and claims.identities && p_news;
        -- A transfer that names one of them may find its subscriptions only now.
        select v_names || p_news || coalesce(array_agg(names.identity), '{}') into v_names
        from headroom.store_transfers as transfers
        cross join lateral unnest(transfers.from_identities) as names (identity)
        where transfers.source = v_source
            and (transfers.from_identities && p_news or transfers.to_identities && p_news);
    end if;
    if cardinality(v_names) > 0 then
        select p_transactions || coalesce(array_agg(owners.transaction), '{}') into p_transactions
        from headroom.store_owners as owners
        where owners.source = v_source and not owners.is_alias and owners.person = any (
            v_names || array(
                select known.user_id::text from headroom.store_identities as known
                where known.source = v_source and known.identity = any (v_names)
            )
        );
    end if;
    select coalesce(array_agg(distinct transaction order by transaction), '{}') into p_transactions
    from unnest(p_transactions) as transactions (transaction);
end
$$;

-- Locks ---------------------------------------------------------------------------------------------------------------

-- One notification at a time, whoever takes it: whose a subscription is depends on what is told of others. It comes before
-- every lock on a user, and whoever holds it waits for nobody else who wants it.
create function headroom.lock_store_notifications() returns void
    language sql
begin atomic
    select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('headroom.store_notifications', 0));
end;

-- Makes these users known and locks them, then their usage, each in the order in which batches and resets lock: effects
-- of one notification change several users, in an order of their own. A user is made known and locked before the next one
-- is looked at: making all of them known first would hold a new user while waiting for one who comes before.
create function headroom.lock_subscribers(p_users uuid[]) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_user uuid;
begin
    for v_user in select distinct users.user_id from unnest(p_users) as users (user_id) order by users.user_id loop
        insert into headroom.subscribers (user_id) values (v_user) on conflict (user_id) do nothing;
        perform from headroom.subscribers as subscriber where subscriber.user_id = v_user for update;
    end loop;
    perform from public.message_usage as usage
    where usage.user_id = any (p_users) order by usage.user_id, usage.billing_period for update;
end
$$;

-- Applying one event --------------------------------------------------------------------------------------------------

-- Keeps an event whose user is known and computes what follows. p_told says who told it, in the store's words; null is
-- kind and source. Returns what became of it.
create function headroom.apply_read_event(p_event headroom.store_events, p_told text) returns text
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_told constant text := coalesce(p_told, p_event.kind || ' told by ' || p_event.source);
    v_subscriber headroom.subscribers;
    v_subscription headroom.subscriptions;
    v_before jsonb;
    v_after jsonb;
    v_outcome text := 'applied';
begin
    -- One event of a user at a time, and no message resolves the user's terms meanwhile.
    insert into headroom.subscribers (user_id) values (p_event.user_id) on conflict (user_id) do nothing;
    select * into strict v_subscriber from headroom.subscribers as subscriber
    where subscriber.user_id = p_event.user_id for update;
    if not headroom.is_in_force(p_event, v_subscriber.declared_at) then
        if not headroom.keep_store_event(p_event, 'outdated') then
            return 'duplicate';
        end if;
        v_outcome := 'outdated';
    else
        perform headroom.note_declared(p_event.user_id);
        select * into v_subscription from headroom.subscriptions as subscription
        where subscription.user_id = p_event.user_id
            and subscription.original_transaction_id = p_event.original_transaction_id;
        v_before := headroom.store_event_record(
            headroom.terms_of(p_event.user_id, v_now, 'deny'), v_subscriber, v_subscription
        );
        if not headroom.keep_store_event(p_event, 'applied') then
            return 'duplicate';
        end if;
        if headroom.fold_store_events(p_event.user_id) then
            -- The next message of this user finds no usable row, resolves the new terms and keeps the count.
            update public.message_usage as usage
            set usable_until = '-infinity'
            where usage.user_id = p_event.user_id and usage.usable_until > '-infinity';
            select * into strict v_subscriber from headroom.subscribers as subscriber
            where subscriber.user_id = p_event.user_id;
            select * into v_subscription from headroom.subscriptions as subscription
            where subscription.user_id = p_event.user_id
                and subscription.original_transaction_id = p_event.original_transaction_id;
            v_after := headroom.store_event_record(
                headroom.terms_of(p_event.user_id, v_now, 'deny'), v_subscriber, v_subscription
            );
            if p_told is not null and v_before is distinct from v_after then
                v_before := v_before || '{"outcome": "applied"}';
                v_after := v_after || '{"outcome": "applied"}';
            end if;
            perform headroom.record_change(
                p_event.user_id, null, 'store_event', v_before, v_after, v_told, p_event.event_id
            );
        end if;
        if v_subscription.user_id is null then
            -- No event of this transaction has told the plan yet.
            v_outcome := 'waiting';
            update headroom.store_events as events set outcome = v_outcome
            where events.source = p_event.source and events.event_id = p_event.event_id;
        end if;
    end if;
    if v_outcome <> 'applied' then
        perform headroom.record_change(
            p_event.user_id, null, 'store_event', null,
            jsonb_build_object(
                'happened', headroom.instant_text(p_event.event_at), 'outcome', v_outcome,
                'transaction', p_event.original_transaction_id
            ),
            v_told, p_event.event_id
        );
    end if;
    return v_outcome;
end
$$;

-- As before, and it starts from the anchor day that the first event found. subscribers.anchor_day is where the last fold
-- ended: an event that comes late may have taken from the others what gave them their day, and the order would show.
create or replace function headroom.fold_store_events(p_user_id uuid) returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp
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
        if cardinality(v_transactions) = 0 then
            v_anchor_day := coalesce(v_subscriber.declared_anchor_day, v_subscriber.anchor_day);
        end if;
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

-- Keeps what the fold will write over, when no event of a user is in force yet: without events, that is what holds.
-- Returns whether there was one. The caller holds the subscriber's row.
create function headroom.note_declared(p_user_id uuid) returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (
        select from headroom.store_events as events
        join headroom.subscribers as subscriber on subscriber.user_id = events.user_id
        where events.user_id = p_user_id and headroom.is_store_event_kind(events.kind)
            and headroom.is_in_force(events, subscriber.declared_at)
    ) then
        return true;
    end if;
    update headroom.subscribers as subscriber
    set declared_previous_plan = subscriber.previous_plan, declared_anchor_day = subscriber.anchor_day
    where subscriber.user_id = p_user_id
        and (subscriber.declared_previous_plan, subscriber.declared_anchor_day)
            is distinct from (subscriber.previous_plan, subscriber.anchor_day);
    return false;
end
$$;

-- Applies one event that a store told, once however often it is told: {"outcome", "user", "plan", "state", "access",
-- "reason", "expires", "previous_plan"}. The event is kept in the transaction of its effect. docs/reference.md has the
-- fields, the kinds and the outcomes.
create or replace function public.apply_store_event(p_event jsonb) returns jsonb
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_event headroom.store_events := headroom.read_store_event(p_event);
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
    -- A statement of its own: the answer reads what this one writes.
    v_outcome := headroom.apply_read_event(v_event, null);
    return headroom.store_event_answer(v_outcome, v_event.user_id);
end
$$;

-- Computes a user anew after events of a transaction came or went, with what was there before as p_before. The caller
-- holds the subscriber's row and has changed the events. p_was_folded: events were in force before that.
create function headroom.refold_subscriber(
    p_user_id uuid, p_transaction text, p_was_folded boolean, p_before jsonb, p_told text, p_id text
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    delete from headroom.subscriptions as subscription
    where subscription.user_id = p_user_id and subscription.original_transaction_id = p_transaction;
    if p_was_folded then
        -- The fold starts from what was there before the first event; otherwise the anchor day of what went would stay.
        update headroom.subscribers as subscriber set anchor_day = subscriber.declared_anchor_day
        where subscriber.user_id = p_user_id and subscriber.declared_anchor_day <> subscriber.anchor_day;
    end if;
    perform headroom.fold_store_events(p_user_id);
    update public.message_usage as usage set usable_until = '-infinity'
    where usage.user_id = p_user_id and usage.usable_until > '-infinity';
    perform headroom.record_change(
        p_user_id, null, 'store_event', p_before,
        -- What is gone is told as gone.
        coalesce(headroom.standing_record(p_user_id, p_transaction), case when p_before is not null then '{}'::jsonb end),
        p_told, p_id
    );
end
$$;

-- What the audit log keeps of a user and one of the transactions.
create function headroom.standing_record(p_user_id uuid, p_transaction text) returns jsonb
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_subscriber headroom.subscribers;
    v_subscription headroom.subscriptions;
begin
    select * into v_subscriber from headroom.subscribers as subscriber where subscriber.user_id = p_user_id;
    select * into v_subscription from headroom.subscriptions as subscription
    where subscription.user_id = p_user_id and subscription.original_transaction_id = p_transaction;
    return headroom.store_event_record(
        headroom.terms_of(p_user_id, headroom.now(), 'deny'), v_subscriber, v_subscription
    );
end
$$;

-- Usage goes along ----------------------------------------------------------------------------------------------------

-- What a user has counted in the periods that run: {"monthly": 160, "trial": 41}, trials by their plan. Without what came
-- with a subscription: that is others' own.
create function headroom.own_usage(p_user_id uuid) returns jsonb
    language sql stable
begin atomic
    select coalesce(jsonb_object_agg(newest.kind, newest.messages), '{}')
    from (
        select distinct on (kinds.kind)
            kinds.kind,
            greatest(
                usage.message_count
                    - coalesce(case when carried.generation = usage.generation then carried.counted end, 0),
                0
            ) as messages
        from public.message_usage as usage
        cross join lateral (
            select case when headroom.is_month(usage.billing_period) then 'monthly' else usage.billing_period end as kind
        ) as kinds
        left join headroom.store_carried_usage as carried
            on carried.user_id = usage.user_id and carried.billing_period = usage.billing_period
        left join headroom.subscribers as subscriber on subscriber.user_id = usage.user_id
        where usage.user_id = p_user_id and (
            kinds.kind <> 'monthly'
            or headroom.now() < coalesce(
                usage.resets_at,
                case when headroom.is_month(usage.billing_period) then headroom.cycle_start(
                    ((usage.billing_period || '-01')::date + interval '1 month')::date,
                    coalesce(subscriber.anchor_day, 1)
                ) end
            )
        )
        order by kinds.kind, usage.billing_period desc
    ) as newest;
end;

-- Adds to a user's counts what those had counted from whom the user's transactions came, each of them once however many
-- came; and takes off what went on with a transaction to somebody else. The caller holds the user's row.
create function headroom.carry_usage(p_user_id uuid, p_told text, p_id text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_terms headroom.terms;
    v_anchor_day integer;
    v_month date;
    v_billing_period text;
    v_starts_at timestamptz;
    v_ends_at timestamptz;
    v_change record;
    v_before public.message_usage;
    v_after public.message_usage;
    v_counted integer;
    v_difference bigint;
begin
    -- Most users have what they bought themselves, and a renewal of theirs is not to cost what follows.
    if not exists (
        select from headroom.store_owners as owners where owners.person = p_user_id::text and owners.step > 0
    ) and not exists (
        select from headroom.store_carried_usage as carried where carried.user_id = p_user_id
    ) then
        return;
    end if;
    v_terms := headroom.terms_of(p_user_id, v_now, 'deny');
    -- The monthly period as headroom.terms_of has it, also of who has no monthly plan just now: what came with a
    -- subscription is not to depend on what an operator, or an event that is late, makes of it meanwhile.
    select coalesce(max(subscriber.anchor_day), 1) into v_anchor_day
    from headroom.subscribers as subscriber where subscriber.user_id = p_user_id;
    v_month := headroom.cycle_month(v_now, v_anchor_day);
    if exists (
        select from public.message_usage as usage
        where usage.user_id = p_user_id
            and usage.billing_period = headroom.month_label((v_month + interval '1 month')::date)
    ) then
        v_month := (v_month + interval '1 month')::date;
    end if;
    v_billing_period := headroom.month_label(v_month);
    v_ends_at := headroom.cycle_start((v_month + interval '1 month')::date, v_anchor_day);
    -- The count stays where a new anchor day moves the period that has it, and with the count what came to it before.
    update headroom.store_carried_usage as carried set ends_at = v_ends_at
    where carried.user_id = p_user_id and carried.billing_period = v_billing_period
        and carried.ends_at > v_now and carried.ends_at <> v_ends_at;
    select least(headroom.cycle_start(v_month, v_anchor_day), v_now, min(carried.starts_at)) into v_starts_at
    from headroom.store_carried_usage as carried
    where carried.user_id = p_user_id and carried.billing_period = v_billing_period and carried.ends_at > v_now;
    for v_change in
        with given as (
            select
                owners.transaction, owners.source, owners.is_alias, owners.made_at, owners.usage,
                giver.person as origin
            from headroom.store_owners as owner
            join headroom.store_owners as owners
                on owners.source = owner.source and owners.transaction = owner.transaction and owners.step > 0
            join headroom.store_owners as giver
                on giver.source = owners.source and giver.transaction = owners.transaction
                    and giver.step = owners.step - 1
            where owner.person = p_user_id::text and giver.person <> owner.person and owners.usage is not null
                and not exists (
                    select from headroom.store_owners as later
                    where later.source = owner.source and later.transaction = owner.transaction
                        and later.step > owner.step
                )
        ),
        origins as (
            select
                case counted.kind when 'monthly' then v_billing_period else counted.kind end as billing_period,
                given.origin, max(counted.messages::integer) as messages
            from given
            cross join lateral jsonb_each_text(given.usage) as counted (kind, messages)
            where case
                when given.is_alias then exists (
                    select from headroom.plans as plans where plans.plan = counted.kind and plans.cycle = 'trial'
                )
                -- Only what the transaction is, or was: a monthly plan, a trial.
                else exists (
                    select from headroom.store_events as events
                    join headroom.plans as plans on plans.plan = events.plan
                    where events.source = given.source and events.original_transaction_id = given.transaction
                        and case counted.kind
                            when 'monthly' then plans.cycle = 'monthly'
                                and given.made_at >= v_starts_at
                            else plans.cycle = 'trial' and plans.plan = counted.kind
                        end
                )
            end
            group by 1, 2
        ),
        wanted as (
            select origins.billing_period, least(sum(origins.messages), 2147483647)::integer as messages
            from origins group by 1
        ),
        present as (
            select carried.* from headroom.store_carried_usage as carried
            where carried.user_id = p_user_id and carried.ends_at > v_now
        )
        select
            coalesce(wanted.billing_period, present.billing_period) as billing_period,
            coalesce(wanted.messages, 0) as messages, coalesce(present.messages, 0) as messages_before,
            present.generation, coalesce(present.counted, 0) as counted
        from wanted
        full join present on present.billing_period = wanted.billing_period
        where coalesce(wanted.messages, 0) <> coalesce(present.messages, 0)
    loop
        v_difference := v_change.messages - v_change.messages_before;
        if v_difference > 0 then
            insert into public.message_usage (user_id, billing_period, updated_at, plan, plan_limit, "limit")
            select
                p_user_id, v_change.billing_period, v_now, plans.plan, limits.messages, limits.messages
            from (select) as always
            left join headroom.plans as plans on plans.plan = case
                when not headroom.is_month(v_change.billing_period) then v_change.billing_period
                when v_terms.cycle = 'monthly' then v_terms.plan
            end
            -- Whoever reads the table takes null for no limit.
            cross join lateral (
                select case when plans.plan is not null or v_terms.allowance is null then plans.allowance else 0 end
            ) as limits (messages)
            on conflict (user_id, billing_period) do nothing;
        end if;
        select * into v_before from public.message_usage as usage
        where usage.user_id = p_user_id and usage.billing_period = v_change.billing_period
        for update;
        if not found then
            delete from headroom.store_carried_usage as carried
            where carried.user_id = p_user_id and carried.billing_period = v_change.billing_period;
            continue;
        end if;
        -- What came before a reset is not in the count any more.
        v_counted := case when v_before.generation = v_change.generation then v_change.counted else 0 end;
        v_difference := greatest(v_difference, -least(v_counted, v_before.message_count));
        -- "released" says that a lower count is no reset.
        update public.message_usage as usage
        set message_count = least(usage.message_count + v_difference, 2147483647),
            released = usage.released + greatest(-v_difference, 0),
            updated_at = v_now, usable_until = '-infinity'
        where usage.user_id = p_user_id and usage.billing_period = v_change.billing_period
        returning * into v_after;
        insert into headroom.store_carried_usage (
            user_id, billing_period, generation, messages, counted, starts_at, ends_at
        ) values (
            p_user_id, v_change.billing_period, v_after.generation, v_change.messages,
            greatest(v_counted + v_after.message_count - v_before.message_count, 0),
            case when headroom.is_month(v_change.billing_period) then v_starts_at else '-infinity' end,
            case when headroom.is_month(v_change.billing_period) then v_ends_at else 'infinity' end
        )
        on conflict (user_id, billing_period) do update
        set generation = excluded.generation, messages = excluded.messages, counted = excluded.counted,
            starts_at = excluded.starts_at, ends_at = excluded.ends_at;
        perform headroom.record_change(
            p_user_id, v_change.billing_period, 'store_event', headroom.usage_record(v_before),
            headroom.usage_record(v_after), p_told, p_id
        );
    end loop;
end
$$;

-- Brings a transaction's events to its owner, where they are somebody else's, and notes what each owner had counted who
-- gave it away. The caller holds the rows of all whom headroom.note_store_owners returned.
create function headroom.settle_store_owner(
    p_source text, p_transaction text, p_told text, p_id text
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_owner headroom.store_owners;
    v_owner_id uuid;
    v_was_given boolean;
    v_is_waiting boolean;
    v_transferred_at timestamptz;
    v_trial_started_at timestamptz;
    v_user_id uuid;
    v_users uuid[];
    v_was_folded boolean[] := '{}';
    v_before jsonb[] := '{}';
begin
    select * into v_owner from headroom.store_owners as owners
    where owners.source = p_source and owners.transaction = p_transaction
    order by owners.step desc limit 1;
    if not found then
        return;
    end if;
    -- Most transactions stay with who bought them, and a renewal of theirs is not to cost what a transfer does.
    v_was_given := v_owner.step > 0;
    if v_was_given then
        update headroom.store_owners as owners
        set made_at = headroom.now(), usage = headroom.own_usage(headroom.user_of_person(giver.person))
        from headroom.store_owners as giver
        where owners.source = p_source and owners.transaction = p_transaction and owners.step > 0
            and owners.made_at is null
            and giver.source = owners.source and giver.transaction = owners.transaction
            and giver.step = owners.step - 1;
        v_transferred_at := v_owner.since;
    end if;
    v_owner_id := headroom.user_of_person(v_owner.person);
    select
        array_agg(distinct users.user_id) filter (
            where (events.user_id, events.transferred_at) is distinct from (v_owner_id, v_transferred_at)
                and users.user_id is not null
        ),
        bool_or(events.outcome = 'waiting')
    into v_users, v_is_waiting
    from headroom.store_events as events
    cross join lateral (select unnest(array[events.user_id, v_owner_id])) as users (user_id)
    where events.source = p_source and events.original_transaction_id = p_transaction;
    if v_users is not null then
        for i in 1 .. cardinality(v_users) loop
            v_was_folded[i] := headroom.note_declared(v_users[i]);
            v_before[i] := headroom.standing_record(v_users[i], p_transaction);
        end loop;
        update headroom.store_events as events
        set user_id = v_owner_id, transferred_at = v_transferred_at,
            outcome = case events.outcome when 'outdated' then 'applied' else events.outcome end
        where events.source = p_source and events.original_transaction_id = p_transaction;
        for i in 1 .. cardinality(v_users) loop
            perform headroom.refold_subscriber(
                v_users[i], p_transaction, v_was_folded[i], v_before[i], p_told, p_id
            );
        end loop;
    end if;

    if v_was_given then
        -- Who had its trial has had a trial, also after giving it away.
        select min(coalesce(events.started_at, events.event_at)) into v_trial_started_at
        from headroom.store_events as events
        join headroom.plans as plans on plans.plan = events.plan and plans.cycle = 'trial'
        where events.source = p_source and events.original_transaction_id = p_transaction
            and events.kind in ('purchased', 'renewed');
        for v_user_id in
            update headroom.subscribers as subscriber set trial_started_at = v_trial_started_at
            from headroom.store_owners as owners
            where owners.source = p_source and owners.transaction = p_transaction
                and subscriber.user_id = headroom.user_of_person(owners.person)
                and coalesce(subscriber.trial_started_at > v_trial_started_at, v_trial_started_at is not null)
            returning subscriber.user_id
        loop
            -- A later trial of theirs goes on in this one.
            perform headroom.fold_store_events(v_user_id);
            update public.message_usage as usage set usable_until = '-infinity'
            where usage.user_id = v_user_id and usage.usable_until > '-infinity';
        end loop;
        -- What waited for something to take has its effect now.
        update headroom.store_notifications as notifications set outcome = 'applied'
        from headroom.store_owners as owners
        join headroom.store_transfers as transfers on transfers.source = owners.source and transfers.id = owners.told_by
        where owners.source = p_source and owners.transaction = p_transaction and owners.step > 0
            and notifications.source = owners.source and notifications.id = owners.told_by
            and notifications.outcome = 'waiting';
    end if;
    -- And what waited for a plan.
    if v_is_waiting then
        with served as (
            update headroom.store_events as events set outcome = 'applied'
            from headroom.subscriptions as subscription
            where events.source = p_source and events.original_transaction_id = p_transaction
                and events.outcome = 'waiting'
                and subscription.user_id = events.user_id and subscription.original_transaction_id = p_transaction
            returning events.event_id
        )
        update headroom.store_notifications as notifications set outcome = 'applied'
        from served
        where notifications.source = p_source and notifications.id = served.event_id
            and notifications.outcome = 'waiting';
    end if;
end
$$;

-- Effects -------------------------------------------------------------------------------------------------------------

-- The key of a purchase's grant, whatever the length of the transaction's name.
create function headroom.store_grant_key(p_source text, p_transaction text) returns text
    language sql immutable parallel safe
begin atomic
    select case
        when octet_length(names.name) <= 128 then names.name
        else 'store:' || encode(sha256(convert_to(names.name, 'UTF8')), 'hex')
    end
    from (select 'store:' || p_source || ':' || p_transaction as name) as names;
end;

-- Takes a purchase's messages off the period in which they were granted, while that runs.
create function headroom.take_back_store_grant(
    p_purchase headroom.store_purchases, p_told text, p_id text
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_before public.message_usage;
    v_after public.message_usage;
begin
    select * into v_before from public.message_usage as usage
    where usage.user_id = p_purchase.user_id and usage.billing_period = p_purchase.billing_period
        and coalesce(usage.resets_at > headroom.now(), true)
    for update;
    if not found then
        return;
    end if;
    update public.message_usage as usage
    set granted = nullif(greatest(usage.granted - p_purchase.granted, 0), 0),
        -- Without a limit it stays without one: greatest() passes over nulls.
        "limit" = case when usage."limit" is not null then greatest(usage."limit" - p_purchase.granted, 0) end,
        usable_until = '-infinity'
    where usage.user_id = p_purchase.user_id and usage.billing_period = p_purchase.billing_period
    returning * into v_after;
    delete from headroom.grants as grants
    where grants.user_id = p_purchase.user_id
        and grants.key = headroom.store_grant_key(p_purchase.source, p_purchase.transaction);
    update headroom.store_purchases as purchases
    set granted = null, billing_period = null
    where purchases.source = p_purchase.source and purchases.transaction = p_purchase.transaction;
    perform headroom.record_change(
        p_purchase.user_id, p_purchase.billing_period, 'grant', headroom.usage_record(v_before),
        headroom.usage_record(v_after), p_told, p_id
    );
end
$$;

-- Grants what a one-time purchase bought, unless it was refunded; takes it back after a refund, while the period runs in
-- which it was granted. Called again it changes nothing. Returns whether there is such a purchase.
create function headroom.settle_store_purchase(
    p_source text, p_transaction text, p_told text, p_id text
) returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_key constant text := headroom.store_grant_key(p_source, p_transaction);
    v_purchase headroom.store_purchases;
    v_is_refunded boolean;
begin
    select * into v_purchase from headroom.store_purchases as purchases
    where purchases.source = p_source and purchases.transaction = p_transaction;
    if not found then
        return false;
    end if;
    select events.kind = 'revoked' into v_is_refunded
    from headroom.store_events as events
    where events.source = p_source and events.original_transaction_id = p_transaction
        and events.kind in ('revoked', 'reinstated')
    order by events.event_at desc, events.event_id collate "C" desc
    limit 1;
    if v_is_refunded is not true and v_purchase.granted is null then
        if v_purchase.messages > 1000000 then
            raise exception 'the purchase is of % messages, and a grant has at most 1000000', v_purchase.messages
                using errcode = 'invalid_parameter_value';
        end if;
        perform headroom.grant_once(
            v_purchase.user_id, v_purchase.messages::integer, p_told, v_key, headroom.unknown_users()
        );
        update headroom.store_purchases as purchases
        set granted = v_purchase.messages, billing_period = grants.billing_period
        from headroom.grants as grants
        where purchases.source = p_source and purchases.transaction = p_transaction
            and grants.user_id = v_purchase.user_id and grants.key = v_key;
    elsif v_is_refunded and v_purchase.granted is not null then
        perform headroom.take_back_store_grant(v_purchase, p_told, p_id);
    end if;
    return true;
end
$$;

-- What was bought in the month that runs belongs to it, also where it was told before the subscription with which the
-- month began, and so was granted to the trial, or the free plan, of before. What was used there stays there.
create function headroom.move_store_purchases(p_user_id uuid, p_told text, p_id text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_terms headroom.terms;
    v_purchase headroom.store_purchases;
    v_unused integer;
begin
    if not exists (select from headroom.store_purchases as purchases where purchases.user_id = p_user_id) then
        return;
    end if;
    v_terms := headroom.terms_of(p_user_id, headroom.now(), headroom.unknown_users());
    if v_terms.cycle <> 'monthly' then
        return;
    end if;
    for v_purchase in
        select purchases.* from headroom.store_purchases as purchases
        where purchases.user_id = p_user_id and purchases.granted is not null
            and purchases.happened_at >= v_terms.started_at
            and not headroom.is_month(purchases.billing_period)
        order by purchases.source, purchases.transaction
    loop
        -- In a period without a limit no grant was used.
        select case
            when usage."limit" is null then v_purchase.granted
            else greatest(least(v_purchase.granted, usage."limit"::bigint - usage.message_count - usage.held), 0)
        end into v_unused
        from public.message_usage as usage
        where usage.user_id = p_user_id and usage.billing_period = v_purchase.billing_period
            and coalesce(usage.resets_at > headroom.now(), true);
        continue when v_unused is null or v_unused = 0;
        v_purchase.granted := v_unused;
        perform headroom.take_back_store_grant(v_purchase, p_told, p_id);
        update headroom.store_purchases as purchases set messages = v_unused
        where purchases.source = v_purchase.source and purchases.transaction = v_purchase.transaction;
        perform headroom.settle_store_purchase(v_purchase.source, v_purchase.transaction, p_told, p_id);
    end loop;
end
$$;

-- The plan that a product is in a period; null where the effect names none. HR004 where it is not mapped.
create function headroom.plan_of_product(
    p_source text, p_product text, p_period text, p_is_needed boolean
) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_plan text;
begin
    select
        case p_period
            when 'trial' then products.trial_plan
            when 'intro' then coalesce(products.intro_plan, products.plan)
            else products.plan
        end
    into v_plan
    from headroom.store_products as products
    where products.source = p_source and products.product = p_product and products.plan is not null;
    if v_plan is null and p_product is not null and p_is_needed then
        raise exception 'product % of % is mapped to no plan', quote_literal(p_product), p_source
            using errcode = 'HR004',
                hint = 'headroom product map SOURCE PRODUCT --plan PLAN, then headroom events replay --failed.';
    end if;
    return v_plan;
end
$$;

-- One effect on a subscription, as the event that it is. Returns what became of it.
create function headroom.apply_subscription_effect(
    p_notification headroom.store_notifications, p_effect jsonb, p_place integer, p_told text
) returns text
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_source constant text := p_notification.source;
    v_transaction constant text := p_effect ->> 'transaction';
    v_kind constant text := p_effect ->> 'kind';
    v_next_product constant text := case v_kind when 'product_changed' then p_effect ->> 'next_product' end;
    v_is_temporary constant boolean := v_kind = 'temporary';
    v_is_needed constant boolean := v_kind in ('purchased', 'renewed', 'temporary', 'product_changed');
    v_expires timestamptz := (p_effect ->> 'expires')::timestamptz;
    v_person text;
    v_event headroom.store_events;
    v_outcome text;
begin
    if v_is_temporary then
        v_expires := least(v_expires, p_notification.happened_at + interval '24 hours');
    end if;
    v_event := headroom.read_store_event(jsonb_strip_nulls(jsonb_build_object(
        'id', p_notification.id || case when p_place > 1 then '/' || p_place else '' end,
        'source', v_source,
        'at', to_char(p_notification.happened_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'transaction', v_transaction,
        -- It gives access and begins no period: nothing was paid yet.
        'kind', case when v_is_temporary then 'extended' else v_kind end,
        -- Without an end, what is no payment waits for one: it would give access for good.
        'plan', case
            when v_next_product is null and (v_is_needed or v_expires is not null or v_kind in ('expired', 'revoked'))
                then headroom.plan_of_product(v_source, p_effect ->> 'product', p_effect ->> 'period', v_is_needed)
        end,
        'product', case when v_next_product is null then p_effect ->> 'product' end,
        'next_plan', headroom.plan_of_product(v_source, v_next_product, 'normal', true),
        'next_product', v_next_product,
        'started', p_effect ->> 'started',
        'expires', to_char(v_expires at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'grace_until', case when v_kind in ('grace_period', 'billing_retry') then p_effect ->> 'grace_until' end,
        'environment', p_notification.environment
    )));
    -- When it was received first: what set_plan declared since then holds, also when it is applied again.
    v_event.received_at := p_notification.received_at;
    select owners.person, case when owners.step > 0 then owners.since end
    into v_person, v_event.transferred_at
    from headroom.store_owners as owners
    where owners.source = v_source and owners.transaction = v_transaction
    order by owners.step desc limit 1;
    v_event.user_id := coalesce(
        headroom.user_of_person(v_person),
        (
            select events.user_id from headroom.store_events as events
            where events.source = v_source and events.original_transaction_id = v_transaction
                and events.user_id is not null and v_person is null
            order by events.event_at desc, events.event_id limit 1
        ),
        (
            select purchases.user_id from headroom.store_purchases as purchases
            where purchases.source = v_source and purchases.transaction = v_transaction
        )
    );
    if v_event.user_id is null then
        raise exception 'nobody is known by its identities or its transaction'
            using errcode = 'HR003',
                hint = 'It is applied by itself as soon as an event that names both the user''s UUID and one of them comes.';
    end if;
    perform headroom.check_store_event(v_event);
    v_outcome := headroom.apply_read_event(v_event, p_told);
    if v_kind in ('revoked', 'reinstated')
        and headroom.settle_store_purchase(v_source, v_transaction, p_told, p_notification.id)
    then
        v_outcome := 'applied';
    end if;
    return v_outcome;
end
$$;

-- A one-time purchase: messages for the current period.
create function headroom.apply_grant_effect(
    p_notification headroom.store_notifications, p_effect jsonb, p_told text
) returns text
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_source constant text := p_notification.source;
    v_transaction constant text := p_effect ->> 'transaction';
    v_user_id constant uuid := coalesce(
        headroom.user_of_person(headroom.store_person(v_source, p_notification.identities)),
        (
            select headroom.user_of_person(owners.person) from headroom.store_owners as owners
            where owners.source = v_source and owners.transaction = v_transaction
            order by owners.step desc limit 1
        )
    );
    v_product headroom.store_products;
begin
    select * into v_product from headroom.store_products as products
    where products.source = v_source and products.product = p_effect ->> 'product';
    if v_product.messages is null then
        raise exception 'product % of % is mapped to no messages', quote_literal(p_effect ->> 'product'), v_source
            using errcode = 'HR004',
                hint = 'headroom product map SOURCE PRODUCT --messages N (0 to grant none), then headroom events replay '
                    '--failed.';
    elsif v_product.messages = 0 then
        return 'ignored';
    elsif v_user_id is null then
        raise exception 'nobody is known by its identities'
            using errcode = 'HR003',
                hint = 'It is applied by itself as soon as an event that names both the user''s UUID and one of them comes.';
    end if;
    insert into headroom.store_purchases as purchases (source, transaction, user_id, happened_at, messages)
    values (
        v_source, v_transaction, v_user_id, p_notification.happened_at,
        v_product.messages::bigint * coalesce((p_effect ->> 'quantity')::integer, 1)
    )
    on conflict (source, transaction) do update set messages = excluded.messages where purchases.granted is null;
    perform headroom.settle_store_purchase(v_source, v_transaction, p_told, p_notification.id);
    return 'applied';
end
$$;

-- Several ids of one person: what the others used of a trial is used, and when it began it began.
create function headroom.apply_alias_effect(
    p_notification headroom.store_notifications, p_effect jsonb, p_place integer
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_identities constant text[] := headroom.read_store_identities('identities', p_effect -> 'identities');
    v_first constant text := headroom.store_person(p_notification.source, v_identities);
    v_other text;
    v_number integer := 0;
    v_name text;
begin
    if headroom.user_of_person(v_first) is null then
        return;
    end if;
    for v_other in
        select distinct names.identity from unnest(v_identities) as names (identity)
        where names.identity not like '%:%' and names.identity <> v_first order by 1
    loop
        v_number := v_number + 1;
        v_name := concat_ws(':', 'alias', p_notification.id, p_place, v_number);
        insert into headroom.store_owners (
            source, transaction, step, person, since, told_by, is_alias, made_at, usage
        ) values
            (p_notification.source, v_name, 0, v_other, '-infinity', p_notification.id, true, headroom.now(), null),
            (
                p_notification.source, v_name, 1, v_first, p_notification.happened_at, p_notification.id, true,
                headroom.now(), headroom.own_usage(v_other::uuid)
            )
        on conflict (source, transaction, step) do nothing;
        update headroom.subscribers as subscriber
        set trial_started_at = least(subscriber.trial_started_at, other.trial_started_at)
        from headroom.subscribers as other
        where subscriber.user_id = v_first::uuid and other.user_id = v_other::uuid
            and other.trial_started_at is not null;
    end loop;
    -- A trial that goes on does so as the one that began first.
    update headroom.subscriptions as subscription set started_at = subscriber.trial_started_at
    from headroom.subscribers as subscriber
    join headroom.plans as plans on plans.cycle = 'trial'
    where subscription.user_id = v_first::uuid and subscriber.user_id = v_first::uuid
        and subscription.plan = plans.plan and subscription.started_at > subscriber.trial_started_at;
    update public.message_usage as usage set usable_until = '-infinity'
    where usage.user_id = v_first::uuid and usage.usable_until > '-infinity';
end
$$;

-- All effects of a notification, in their order. Returns what became of them together.
create function headroom.apply_store_effects(
    p_notification headroom.store_notifications, p_told text
) returns text
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_effect jsonb;
    v_place integer := 0;
    v_outcome text;
    v_outcomes text[] := '{}';
begin
    if headroom.is_too_early(p_notification) and p_notification.effects <> '[]' then
        raise exception '''at'' is in the future' using errcode = 'invalid_parameter_value',
            hint = 'It is when it happened; the database''s clock says ' || headroom.now()
                || '. headroom events replay applies it when that is there.';
    end if;
    for v_effect in select * from jsonb_array_elements(p_notification.effects) loop
        v_place := v_place + 1;
        case v_effect ->> 'kind'
            when 'granted' then
                v_outcome := headroom.apply_grant_effect(p_notification, v_effect, p_told);
            when 'merged', 'transferred' then
                if v_effect ->> 'kind' = 'merged' then
                    perform headroom.apply_alias_effect(p_notification, v_effect, v_place);
                end if;
                v_outcome := case
                    when v_effect ->> 'kind' = 'merged' and headroom.user_of_person(headroom.store_person(
                        p_notification.source,
                        headroom.read_store_identities('identities', v_effect -> 'identities')
                    )) is not null then 'applied'
                    when exists (
                        select from headroom.store_owners as owners
                        where owners.source = p_notification.source and owners.told_by = p_notification.id
                            and owners.step > 0
                    ) then 'applied'
                    else 'waiting'
                end;
            else
                v_outcome := headroom.apply_subscription_effect(p_notification, v_effect, v_place, p_told);
        end case;
        v_outcomes := v_outcomes || v_outcome;
    end loop;
    return case
        when 'applied' = any (v_outcomes) then 'applied'
        when 'waiting' = any (v_outcomes) then 'waiting'
        when 'outdated' = any (v_outcomes) then 'outdated'
        when 'duplicate' = any (v_outcomes) then 'applied'
        else 'ignored'
    end;
end
$$;

-- Taking --------------------------------------------------------------------------------------------------------------

-- The user whom a notification concerns, as far as that is known.
create function headroom.user_of_notification(p_notification headroom.store_notifications) returns uuid
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_source constant text := p_notification.source;
    v_effect jsonb;
    v_user_id uuid;
begin
    for v_effect in select * from jsonb_array_elements(p_notification.effects) loop
        select headroom.user_of_person(owners.person) into v_user_id
        from headroom.store_owners as owners
        where owners.source = v_source and owners.transaction = v_effect ->> 'transaction'
        order by owners.step desc limit 1;
        v_user_id := coalesce(
            v_user_id,
            (
                select events.user_id from headroom.store_events as events
                where events.source = v_source and events.original_transaction_id = v_effect ->> 'transaction'
                    and events.user_id is not null
                order by events.event_at desc limit 1
            ),
            (
                select purchases.user_id from headroom.store_purchases as purchases
                where purchases.source = v_source and purchases.transaction = v_effect ->> 'transaction'
            ),
            case when v_effect ? 'to' or v_effect ? 'identities' then headroom.user_of_person(headroom.store_person(
                v_source,
                headroom.read_store_identities('to', coalesce(v_effect -> 'to', v_effect -> 'identities'))
            )) end
        );
        exit when v_user_id is not null;
    end loop;
    return coalesce(
        v_user_id, headroom.user_of_person(headroom.store_person(v_source, p_notification.identities))
    );
end
$$;

-- Applies a kept notification; what goes wrong is undone and noted with it. The caller holds the rows of everybody whom
-- it concerns.
create function headroom.work_store_notification(p_notification headroom.store_notifications) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_notification headroom.store_notifications := p_notification;
    v_told constant text := p_notification.type || ' told by ' || p_notification.source;
    v_state text;
    v_hint text;
begin
    v_notification.user_id := headroom.user_of_notification(p_notification);
    -- Kept with the user only where the user is known, because who is not can not be forgotten either.
    if not exists (
        select from headroom.subscribers as subscriber where subscriber.user_id = v_notification.user_id
    ) then
        v_notification.user_id := null;
    end if;
    v_notification.attempts := v_notification.attempts + 1;
    v_notification.lacks := null;
    v_notification.problem := null;
    begin
        v_notification.outcome := headroom.apply_store_effects(p_notification, v_told);
        if v_notification.outcome = 'ignored' and p_notification.problem is not null
            and jsonb_array_length(p_notification.effects) = 0
        then
            v_notification.outcome := 'failed';
            v_notification.problem := p_notification.problem;
        end if;
    exception when others then
        get stacked diagnostics v_state = returned_sqlstate, v_notification.problem = message_text,
            v_hint = pg_exception_hint;
        -- Deadlocks, cancellation, a full disk and the like are no matter of the notification: it is to be sent again.
        if left(v_state, 2) in ('40', '53', '54', '55', '57', '58', 'XX') then
            raise;
        end if;
        v_notification.outcome := 'failed';
        v_notification.lacks := case v_state when 'HR003' then 'user' when 'HR004' then 'product' end;
        v_notification.problem := left(
            v_notification.problem || case when v_hint <> '' then '. ' || v_hint else '' end, 1000
        );
    end;
    if v_notification.outcome <> 'failed' then
        v_notification.applied_at := headroom.now();
        v_notification.effect := headroom.store_event_answer(v_notification.outcome, v_notification.user_id)
            - '{outcome,user}'::text[];
    end if;
    update headroom.store_notifications as notifications
    set user_id = v_notification.user_id, outcome = v_notification.outcome, lacks = v_notification.lacks,
        problem = v_notification.problem, effect = v_notification.effect, attempts = v_notification.attempts,
        applied_at = v_notification.applied_at
    where notifications.source = p_notification.source and notifications.id = p_notification.id;
    -- For the story of the user: what changed nothing is told as well, and a failure once.
    if v_notification.user_id is not null
        and not exists (
            select from headroom.audit_log as audit
            where audit.user_id = v_notification.user_id and audit.event_id = p_notification.id
                and audit.at = headroom.now() and audit.reason = v_told
        )
        and (p_notification.attempts = 0 or v_notification.outcome <> 'failed')
    then
        perform headroom.record_change(
            v_notification.user_id, null, 'store_event', null,
            jsonb_build_object(
                'happened', headroom.instant_text(p_notification.happened_at), 'outcome', v_notification.outcome
            ),
            v_told, p_notification.id
        );
    end if;
end
$$;

-- All that follows from a notification that is kept, or that is kept in other words than before: whose transactions are,
-- what it does, and what waited for it.
create function headroom.settle_store_notification(
    p_source text, p_id text, p_is_replay boolean default false
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_notification headroom.store_notifications;
    v_waiting headroom.store_notifications[];
    v_claim headroom.store_notifications;
    v_told text;
    v_transactions text[];
    v_news text[];
    v_transaction text;
    v_users uuid[] := '{}';
    v_user_id uuid;
begin
    select * into strict v_notification from headroom.store_notifications as notifications
    where notifications.source = p_source and notifications.id = p_id;
    v_told := v_notification.type || ' told by ' || p_source;
    select facts.p_transactions, facts.p_news into v_transactions, v_news
    from headroom.note_store_facts(v_notification) as facts;
    -- What could not be applied for the lack of a user is applied as soon as the user is known.
    select coalesce(array_agg(waiting order by waiting.happened_at, waiting.id collate "C"), '{}') into v_waiting
    from headroom.store_notifications as waiting
    where waiting.source = p_source and waiting.outcome = 'failed' and waiting.lacks = 'user' and waiting.id <> p_id
        and waiting.effects is not null
        and waiting.mentions && (v_news || array(
            select 'transaction:' || names.name from unnest(v_transactions || array(
                select effects.value ->> 'transaction' from jsonb_array_elements(v_notification.effects) as effects
                where effects.value ->> 'transaction' is not null
            )) as names (name)
        ));
    select array_agg(distinct names.name order by names.name) into v_transactions
    from (
        select unnest(v_transactions)
        union all
        select claims.transaction from headroom.store_claims as claims
        join unnest(v_waiting) as waiting on waiting.id = claims.id
        where claims.source = p_source
    ) as names (name);
    if v_notification.attempts = 0 and cardinality(v_news) = 0 and cardinality(v_waiting) = 0
        and not v_notification.effects @? '$[*] ? (@.kind == "transferred" || @.kind == "merged")'
    then
        v_claim := v_notification;
    end if;
    foreach v_transaction in array coalesce(v_transactions, '{}') loop
        v_users := v_users || headroom.note_store_owners(p_source, v_transaction, v_claim);
    end loop;
    select v_users || coalesce(array_agg(concerned.user_id), '{}') into v_users
    from (
        select headroom.user_of_notification(notifications)
        from unnest(v_waiting || v_notification) as notifications
        where exists (select from jsonb_array_elements(notifications.effects))
        union all
        select headroom.user_of_person(headroom.store_person(p_source, notifications.identities))
        from unnest(v_waiting || v_notification) as notifications
        where notifications.effects @> '[{"kind": "granted"}]'
        union all
        select headroom.user_of_person(names.value)
        from unnest(v_waiting || v_notification) as notifications
        cross join lateral jsonb_array_elements(notifications.effects) as effects (value)
        cross join lateral jsonb_array_elements_text(effects.value -> 'identities') as names (value)
        where effects.value ->> 'kind' = 'merged'
    ) as concerned (user_id)
    where concerned.user_id is not null;
    select coalesce(array_agg(distinct users.user_id order by users.user_id), '{}') into v_users
    from unnest(v_users) as users (user_id);

    perform headroom.lock_subscribers(v_users);
    foreach v_transaction in array coalesce(v_transactions, '{}') loop
        perform headroom.settle_store_owner(p_source, v_transaction, v_told, p_id);
    end loop;
    if p_is_replay then
        perform headroom.undo_store_events(p_source, p_id, v_told);
    end if;
    perform headroom.work_store_notification(v_notification);
    foreach v_notification in array v_waiting loop
        perform headroom.work_store_notification(v_notification);
    end loop;
    -- Events that came only now may have told of a trial.
    foreach v_transaction in array coalesce(v_transactions, '{}') loop
        perform headroom.settle_store_owner(p_source, v_transaction, v_told, p_id);
    end loop;
    foreach v_user_id in array v_users loop
        perform headroom.carry_usage(v_user_id, v_told, p_id);
        perform headroom.move_store_purchases(v_user_id, v_told, p_id);
    end loop;
end
$$;

-- What became of a notification, and where its user stands now.
create function headroom.store_notification_answer(
    p_source text, p_id text, p_outcome text default null
) returns jsonb
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select headroom.store_event_answer(coalesce(p_outcome, notifications.outcome), notifications.user_id)
            || jsonb_strip_nulls(jsonb_build_object('problem', notifications.problem))
        from headroom.store_notifications as notifications
        where notifications.source = p_source and notifications.id = p_id
    );
end
$$;

-- Takes what a store sent, in the form that docs/reference.md describes, and answers {"outcome", "problem", "user",
-- "plan", "state", "access", "reason", "expires", "previous_plan"}. Kept once, by source and id, in the transaction of its
-- effects; sent again it changes nothing, unless it could not be applied: then it is tried again.
create function headroom.take_store_notification(p_notification jsonb) returns jsonb
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_read constant headroom.store_notifications := headroom.read_store_notification(p_notification);
    v_outcome text;
begin
    perform headroom.lock_store_notifications();
    select notifications.outcome into v_outcome from headroom.store_notifications as notifications
    where notifications.source = v_read.source and notifications.id = v_read.id;
    if v_outcome <> 'failed' then
        return headroom.store_notification_answer(v_read.source, v_read.id, 'duplicate');
    end if;
    perform headroom.keep_store_notification(v_read);
    perform headroom.settle_store_notification(v_read.source, v_read.id);
    return headroom.store_notification_answer(v_read.source, v_read.id);
end
$$;

-- Keeps a notification, or keeps it in these words instead of those of before.
create function headroom.keep_store_notification(p_read headroom.store_notifications) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    insert into headroom.store_notifications as kept (
        source, id, type, happened_at, received_at, environment, identities, effects, payload, mentions, outcome,
        problem, attempts
    ) values (
        p_read.source, p_read.id, p_read.type, p_read.happened_at, p_read.received_at, p_read.environment,
        p_read.identities, p_read.effects, p_read.payload, p_read.mentions,
        case when p_read.problem is null then 'waiting' else 'failed' end, p_read.problem, 0
    )
    on conflict (source, id) do update
    set type = excluded.type, happened_at = excluded.happened_at, environment = excluded.environment,
        identities = excluded.identities, effects = excluded.effects, payload = excluded.payload,
        mentions = excluded.mentions, outcome = excluded.outcome, problem = excluded.problem;
end
$$;

-- Takes back the events of a notification that is about to be read anew. The caller holds the rows of their users.
create function headroom.undo_store_events(p_source text, p_id text, p_told text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_event headroom.store_events;
    v_was_folded boolean;
    v_before jsonb;
begin
    for v_event in
        select events.* from headroom.store_events as events
        where events.source = p_source
            -- Named one by one, of the at most 64 effects, to be found by the key.
            and events.event_id = any (array(
                select p_id union all select p_id || '/' || places.place from generate_series(2, 64) as places (place)
            ))
        order by events.event_id
    loop
        if v_event.user_id is not null then
            v_was_folded := headroom.note_declared(v_event.user_id);
            v_before := headroom.standing_record(v_event.user_id, v_event.original_transaction_id);
        end if;
        delete from headroom.store_events as events
        where events.source = p_source and events.event_id = v_event.event_id;
        if v_event.user_id is not null then
            perform headroom.refold_subscriber(
                v_event.user_id, v_event.original_transaction_id, v_was_folded, v_before,
                'read anew: ' || p_told, p_id
            );
        end if;
    end loop;
end
$$;

-- Reads a kept notification anew, in place of what it was taken for: after an adapter was mended, or a product mapped to
-- another plan. What waited for it is applied as well. Where that fails and it was applied before, everything stays.
create function headroom.replay_store_notification(p_notification jsonb) returns jsonb
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_read headroom.store_notifications := headroom.read_store_notification(p_notification);
    v_kept headroom.store_notifications;
    v_answer jsonb;
begin
    perform headroom.lock_store_notifications();
    select * into v_kept from headroom.store_notifications as notifications
    where notifications.source = v_read.source and notifications.id = v_read.id;
    if not found then
        raise exception 'there is no such notification' using errcode = 'no_data_found',
            hint = 'select source, id from headroom.store_notifications lists those that are kept.';
    end if;
    perform headroom.keep_store_notification(v_read);
    perform headroom.settle_store_notification(v_read.source, v_read.id, v_kept.outcome <> 'failed');
    v_answer := headroom.store_notification_answer(v_read.source, v_read.id);
    if v_answer ->> 'outcome' = 'failed' and v_kept.outcome <> 'failed' then
        raise exception 'it was applied and could not be now; nothing was changed: %', v_answer ->> 'problem'
            using errcode = 'HR005';
    end if;
    return v_answer;
end
$$;

-- Tries a failed notification again, as it was read when it came. What did not fail is only looked at.
create function headroom.retry_store_notification(p_source text, p_id text) returns jsonb
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_kept headroom.store_notifications;
begin
    perform headroom.lock_store_notifications();
    select * into v_kept from headroom.store_notifications as notifications
    where notifications.source = p_source and notifications.id = p_id;
    if not found then
        raise exception 'there is no such notification' using errcode = 'no_data_found',
            hint = 'select source, id from headroom.store_notifications where outcome = ''failed'' lists those that failed.';
    elsif v_kept.outcome = 'failed' and v_kept.effects is null then
        raise exception 'what was in it is not kept any more' using errcode = 'object_not_in_prerequisite_state',
            hint = 'It is pruned after 400 days. set_plan says where the user stands.';
    elsif v_kept.outcome = 'failed' then
        perform headroom.settle_store_notification(p_source, p_id);
    end if;
    return headroom.store_notification_answer(p_source, p_id);
end
$$;

-- Forgets what is in notifications that are older, at most so many at once: payload, identities, effects. That they
-- came stays for good, so that none is ever applied twice. At least 30 days are kept: stores send again for days.
create function headroom.prune_store_notifications(
    p_keep interval default '400 days', p_limit integer default 1000
) returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_count bigint;
begin
    if p_keep is null or p_keep < interval '30 days' then
        raise exception 'notifications are kept for at least 30 days' using errcode = 'invalid_parameter_value';
    end if;
    with old as (
        select notifications.source, notifications.id
        from headroom.store_notifications as notifications
        where notifications.effects is not null and notifications.received_at < headroom.now() - p_keep
        order by notifications.received_at
        limit p_limit
        for update skip locked
    )
    update headroom.store_notifications as notifications
    set identities = '{}', effects = null, payload = null, mentions = '{}'
    from old
    where notifications.source = old.source and notifications.id = old.id;
    get diagnostics v_count = row_count;
    return v_count;
end
$$;

-- Forgetting ----------------------------------------------------------------------------------------------------------

-- An invented name, which nothing leads back from and nobody is known by.
create function headroom.digest_of_nobody() returns text
    language sql volatile
begin atomic
    select 'sha256:' || encode(sha256(convert_to(gen_random_uuid()::text, 'UTF8')), 'hex');
end;

-- Blanks a user's own notifications; in those of others that only name the user, an invented name stands instead, so that
-- they can still be applied. In transfers and aliases it is p_stub, as in the facts. Returns how many.
create function headroom.forget_store_notifications(p_user_id uuid, p_names text[], p_stub text) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_pattern constant text := array_to_string(p_names, '|');
    v_rows bigint;
    v_count bigint;
begin
    update headroom.store_notifications as notifications
    set user_id = null, identities = '{}', effects = null, payload = null, mentions = '{}', effect = null,
        outcome = 'forgotten', lacks = null, problem = null
    where notifications.user_id = p_user_id
        or notifications.mentions && p_names and notifications.user_id is null and not exists (
            select from unnest(notifications.mentions) as names (name)
            where names.name not like '%:%' and names.name <> p_user_id::text
        );
    get diagnostics v_rows = row_count;
    -- Elsewhere it is another one, for beside a UUID it becomes that user's: what p_stub had would, too.
    update headroom.store_notifications as notifications
    set identities = regexp_replace(notifications.identities::text, v_pattern, renamed.name, 'gi')::text[],
        effects = regexp_replace(notifications.effects::text, v_pattern, renamed.name, 'gi')::jsonb,
        payload = regexp_replace(notifications.payload::text, v_pattern, renamed.name, 'gi')::jsonb,
        mentions = regexp_replace(notifications.mentions::text, v_pattern, renamed.name, 'gi')::text[],
        problem = regexp_replace(notifications.problem, v_pattern, renamed.name, 'gi')
    from (
        select others.source, others.id, case
            when others.effects @? '$[*] ? (@.kind == "transferred" || @.kind == "merged")' then p_stub else headroom.digest_of_nobody()
        end as name
        from headroom.store_notifications as others where others.mentions && p_names
    ) as renamed
    where renamed.source = notifications.source and renamed.id = notifications.id;
    get diagnostics v_count = row_count;
    return v_rows + v_count;
end
$$;

-- Deletes what is known of a user from stores; returns how many rows that concerned. Where a subscription went on to
-- somebody else, an invented name stands in the place of who had it, which nothing leads back from: without it, it would
-- go to somebody before.
create function headroom.forget_store_facts(p_user_id uuid) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_user constant text := p_user_id::text;
    v_stub constant text := headroom.digest_of_nobody();
    v_names text[];
    v_rows bigint := 0;
    v_count bigint;
begin
    select array_append(coalesce(array_agg(known.identity), '{}'), v_user) into v_names
    from headroom.store_identities as known where known.user_id = p_user_id;
    v_rows := headroom.forget_store_notifications(p_user_id, v_names, v_stub);

    with owned as (
        select owner.source, owner.transaction
        from headroom.store_owners as owner
        where owner.person = any (v_names) and not exists (
            select from headroom.store_owners as later
            where later.source = owner.source and later.transaction = owner.transaction and later.step > owner.step
        )
    ),
    claims as (
        delete from headroom.store_claims as claims using owned
        where claims.source = owned.source and claims.transaction = owned.transaction
        returning 1
    ),
    owners as (
        delete from headroom.store_owners as owners using owned
        where owners.source = owned.source and owners.transaction = owned.transaction
        returning 1
    )
    select (select count(*) from claims) + (select count(*) from owners) into v_count;
    v_rows := v_rows + v_count;
    update headroom.store_owners as owners set person = v_stub where owners.person = any (v_names);
    update headroom.store_claims as claims
    set identities = case headroom.store_person(claims.source, claims.identities)
        when v_user then array[v_stub]
        else array(
            select names.identity from unnest(claims.identities) with ordinality as names (identity, place)
            where not names.identity = any (v_names) order by names.place
        )
    end
    where claims.identities && v_names;
    update headroom.store_transfers as transfers
    set from_identities = array(
            select distinct case when names.identity = any (v_names) then v_stub else names.identity end
            from unnest(transfers.from_identities) as names (identity)
        ),
        to_identities = case headroom.store_person(transfers.source, transfers.to_identities)
            when v_user then array[v_stub]
            else array(
                select names.identity from unnest(transfers.to_identities) with ordinality as names (identity, place)
                where not names.identity = any (v_names) order by names.place
            )
        end
    where transfers.from_identities && v_names or transfers.to_identities && v_names;
    delete from headroom.store_transfers as transfers
    where transfers.from_identities = array[v_stub] and transfers.to_identities in (array[v_stub], '{}');
    delete from headroom.store_identities as known where known.user_id = p_user_id;
    get diagnostics v_count = row_count;
    v_rows := v_rows + v_count;
    delete from headroom.store_purchases as purchases where purchases.user_id = p_user_id;
    get diagnostics v_count = row_count;
    v_rows := v_rows + v_count;
    delete from headroom.store_carried_usage as carried where carried.user_id = p_user_id;
    get diagnostics v_count = row_count;
    return v_rows + v_count;
end
$$;

-- Deletes all that is known of a user, but for what is left of a trial that was started, under a keyed hash. Returns
-- how many rows that were.
create or replace function public.forget_user(p_user_id uuid) returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_subscriber headroom.subscribers;
    v_rows bigint;
    v_count bigint;
begin
    if p_user_id is null then
        raise exception 'p_user_id is null: pass the user''s uuid' using errcode = 'null_value_not_allowed';
    end if;
    -- Before the user's row, as whoever takes a notification does.
    perform headroom.lock_store_notifications();
    -- A row to hold on to, also for a user who is not known yet: a first message that is on its way comes before this
    -- or after it. It brings a spent trial back, which is spent again below; none of that was there to be forgotten.
    select -1 - count(*) into v_rows from headroom.spent_trials as spent
    where spent.digest = headroom.digest_of(p_user_id);
    insert into headroom.subscribers (user_id) values (p_user_id) on conflict (user_id) do nothing;
    if not found then
        v_rows := 0;
    end if;
    select * into strict v_subscriber from headroom.subscribers where user_id = p_user_id for update;

    with gone as (
        delete from public.message_usage as usage where usage.user_id = p_user_id
        returning usage.billing_period, usage.message_count
    ),
    trials as (
        select
            plans.plan,
            coalesce(least(min(subscription.revoked_at), min(subscription.expires_at)), v_subscriber.trial_ends_at)
                as trial_ends_at,
            coalesce(v_subscriber.trial_started_at, min(subscription.started_at)) as trial_started_at,
            coalesce(max(gone.message_count), 0) as messages
        from headroom.plans as plans
        left join gone on gone.billing_period = plans.plan
        left join headroom.subscriptions as subscription
            on subscription.user_id = p_user_id and subscription.plan = plans.plan
        where plans.cycle = 'trial'
            and (gone.billing_period is not null or subscription.plan is not null or plans.plan = 'trial')
        group by plans.plan
    ),
    spent as (
        insert into headroom.spent_trials (digest, plan, trial_started_at, trial_ends_at, messages)
        select
            headroom.digest_of(p_user_id), trials.plan, trials.trial_started_at, trials.trial_ends_at, trials.messages
        from trials
        where trials.trial_started_at is not null or trials.messages > 0
    )
    select count(*) into v_count from gone;
    v_rows := v_rows + v_count;
    delete from headroom.message_keys where user_id = p_user_id;
    get diagnostics v_count = row_count;
    v_rows := v_rows + v_count;
    delete from headroom.grants where user_id = p_user_id;
    get diagnostics v_count = row_count;
    v_rows := v_rows + v_count;
    delete from headroom.audit_log where user_id = p_user_id;
    get diagnostics v_count = row_count;
    v_rows := v_rows + v_count;
    v_rows := v_rows + headroom.forget_store_facts(p_user_id);
    delete from headroom.store_events where user_id = p_user_id;
    get diagnostics v_count = row_count;
    v_rows := v_rows + v_count;
    delete from headroom.subscriptions where user_id = p_user_id;
    get diagnostics v_count = row_count;
    v_rows := v_rows + v_count;
    delete from headroom.subscribers where user_id = p_user_id;
    get diagnostics v_count = row_count;
    v_rows := v_rows + v_count;
    perform headroom.record_change(null, null, 'forget', null, jsonb_build_object('rows', v_rows));
    return v_rows;
end
$$;

-- Rights --------------------------------------------------------------------------------------------------------------

do $$
declare
    v_function regprocedure;
    v_type regtype;
    v_is_granted boolean := false;
begin
    -- Handing a function over needs the right to create in its schema, for the new owner: for this moment only.
    if not pg_catalog.has_schema_privilege('headroom_service', 'headroom', 'CREATE') then
        grant create on schema headroom to headroom_service;
        v_is_granted := true;
    end if;
    for v_function in
        select oid::regprocedure from pg_catalog.pg_proc
        where pronamespace = 'headroom'::regnamespace and prosecdef and proowner <> 'headroom_service'::regrole
    loop
        execute format('alter function %s owner to headroom_service', v_function);
    end loop;
    if v_is_granted then
        revoke create on schema headroom from headroom_service;
    end if;
    for v_type in
        select type.oid::regtype from pg_catalog.pg_type as type
        where type.typnamespace = 'headroom'::regnamespace and type.typcategory <> 'A'
    loop
        execute format('revoke all on type %s from public', v_type);
    end loop;
end
$$;
revoke all on all tables in schema headroom from public;
revoke all on all functions in schema headroom from public;

grant select, insert, update, delete on
    headroom.store_notifications, headroom.store_identities, headroom.store_claims, headroom.store_transfers,
    headroom.store_owners, headroom.store_carried_usage, headroom.store_purchases
to headroom_service;
grant select on headroom.store_products to headroom_service;
grant execute on function
    headroom.record_product_mapping(), headroom.read_store_identities(text, jsonb),
    headroom.check_store_effect(jsonb), headroom.read_store_notification(jsonb),
    headroom.store_person(text, text[]), headroom.user_of_person(text), headroom.find_store_owners(text, text),
    headroom.note_store_owners(text, text, headroom.store_notifications),
    headroom.learn_store_identities(text, text[], timestamptz, text),
    headroom.is_too_early(headroom.store_notifications),
    headroom.note_store_facts(headroom.store_notifications), headroom.lock_store_notifications(),
    headroom.lock_subscribers(uuid[]), headroom.apply_read_event(headroom.store_events, text),
    headroom.note_declared(uuid),
    headroom.refold_subscriber(uuid, text, boolean, jsonb, text, text), headroom.standing_record(uuid, text),
    headroom.own_usage(uuid), headroom.carry_usage(uuid, text, text),
    headroom.settle_store_owner(text, text, text, text), headroom.settle_store_purchase(text, text, text, text),
    headroom.store_grant_key(text, text),
    headroom.take_back_store_grant(headroom.store_purchases, text, text),
    headroom.move_store_purchases(uuid, text, text),
    headroom.plan_of_product(text, text, text, boolean),
    headroom.apply_subscription_effect(headroom.store_notifications, jsonb, integer, text),
    headroom.apply_grant_effect(headroom.store_notifications, jsonb, text),
    headroom.apply_alias_effect(headroom.store_notifications, jsonb, integer),
    headroom.apply_store_effects(headroom.store_notifications, text),
    headroom.user_of_notification(headroom.store_notifications),
    headroom.work_store_notification(headroom.store_notifications),
    headroom.settle_store_notification(text, text, boolean), headroom.store_notification_answer(text, text, text),
    headroom.take_store_notification(jsonb), headroom.keep_store_notification(headroom.store_notifications),
    headroom.undo_store_events(text, text, text), headroom.replay_store_notification(jsonb),
    headroom.retry_store_notification(text, text), headroom.prune_store_notifications(interval, integer),
    headroom.digest_of_nobody(), headroom.forget_store_notifications(uuid, text[], text),
    headroom.forget_store_facts(uuid)
to headroom_service;

-- Operators see what stores sent and whose it is, say what products are, and have what failed tried again.
grant select on
    headroom.store_products, headroom.store_notifications, headroom.store_identities, headroom.store_claims,
    headroom.store_transfers, headroom.store_owners, headroom.store_carried_usage, headroom.store_purchases
to headroom_operator;
grant insert, update, delete on headroom.store_products to headroom_operator;
grant execute on function
    headroom.take_store_notification(jsonb), headroom.replay_store_notification(jsonb),
    headroom.retry_store_notification(text, text), headroom.prune_store_notifications(interval, integer),
    headroom.map_product(text, text, text, text, text, integer), headroom.unmap_product(text, text)
to headroom_operator;
