-- Deletes the billing data of a user and returns the number of changed rows. The caller has locked the customer.
--
-- The user's own events are blanked. Their ids stay, so that a repeated event is not applied. Events of other users
-- stay, also if the user now owns their transactions, because they show who had a trial and who owned a subscription; a
-- random name replaces the user's name in them.
create or replace function headroom.forget_billing(p_user_id uuid, p_customer_id bigint) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_names constant text[] := array_append(headroom.store_id_digests(p_user_id, p_customer_id), p_user_id::text);
    v_pattern constant text := array_to_string(v_names, '|');
    v_replacement constant text := 'forgotten:' || encode(sha256(convert_to(gen_random_uuid()::text, 'UTF8')), 'hex');
    -- The other users in the events, and the digests of their store ids.
    v_others constant text[] := array(
        select distinct unnest(array_append(headroom.store_id_digests(others.name::uuid, p_customer_id), others.name))
        from (
            select distinct names.name
            from headroom.customer_identities(p_customer_id) as named
            cross join lateral unnest(named.identities) as names (name)
            where names.name ~ '^[0-9a-f-]{36}$' and names.name <> p_user_id::text
        ) as others
    );
    v_has_others boolean;
    v_rows bigint;
    v_count bigint;
begin
    select coalesce(bool_or(
        events.user_id <> p_user_id or headroom.belongs_to_other_user(events.identities, p_user_id, v_others)
    ), false)
    into v_has_others
    from headroom.billing_events as events where events.customer_id = p_customer_id;
    update headroom.billing_events as events
    set customer_id = null, user_id = null, identities = '{}', effects = null, payload = null, effect = null,
        outcome = 'forgotten', missing = null, missing_product = null, problem = null
    where events.customer_id = p_customer_id and (
        events.user_id = p_user_id
        or events.user_id is null and events.identities <@ v_names and events.identities <> '{}'
        -- Transfers in which every other user is forgotten already.
        or events.user_id is null and events.effects::text ~* v_pattern and not exists (
            select from headroom.effect_identities(events.effects) as lists (names)
            cross join lateral unnest(lists.names) as names (name)
            where names.name <> all(v_names) and names.name not like 'forgotten:%'
        )
    )
        -- Events that support the subscription of another user, or may do so later, stay.
        and not headroom.belongs_to_other_user(events.identities, p_user_id, v_others)
        and not (
            v_has_others and (events.missing = 'user' or exists (
                select from headroom.effect_identities(events.effects) as lists (names) where not lists.names <@ v_names
            )) is true
        );
    get diagnostics v_rows = row_count;
    update headroom.billing_events as events
    set user_id = nullif(events.user_id, p_user_id),
        effect = case when events.user_id <> p_user_id then events.effect end,
        identities = regexp_replace(events.identities::text, v_pattern, v_replacement, 'gi')::text[],
        effects = regexp_replace(events.effects::text, v_pattern, v_replacement, 'gi')::jsonb,
        payload = regexp_replace(events.payload::text, v_pattern, v_replacement, 'gi')::jsonb,
        problem = regexp_replace(events.problem, v_pattern, v_replacement, 'gi')
    where events.customer_id = p_customer_id and (
        events.user_id = p_user_id or events.identities && v_names or events.effects::text ~* v_pattern
        or events.payload::text ~* v_pattern
    );
    get diagnostics v_count = row_count;
    v_rows := v_rows + v_count;
    delete from headroom.message_purchases as purchases where purchases.user_id = p_user_id;
    get diagnostics v_count = row_count;
    v_rows := v_rows + v_count;
    delete from headroom.usage_transfers as transfers where p_user_id in (transfers.giver, transfers.receiver);
    get diagnostics v_count = row_count;
    v_rows := v_rows + v_count;
    delete from headroom.customer_names as names
    where names.customer_id = p_customer_id and (
        names.name = 'user:' || p_user_id
        or substr(names.name, strpos(names.name, ':') + 1) = any(v_names)
        -- Transactions that only the user's own events mention.
        or names.name like '%:transaction:%' and not exists (
            select from headroom.billing_events as events
            cross join lateral jsonb_array_elements(events.effects) as effects (value)
            where events.customer_id = p_customer_id
                and names.name = events.source || ':transaction:' || (effects.value ->> 'transaction')
        )
        or not exists (
            select from headroom.billing_events as events where events.customer_id = p_customer_id
        )
    );
    delete from headroom.customers as customers
    where customers.customer_id = p_customer_id and not exists (
        select from headroom.customer_names as names where names.customer_id = p_customer_id
    ) and not exists (
        select from headroom.billing_events as events where events.customer_id = p_customer_id
    );
    return v_rows;
end
$$;
