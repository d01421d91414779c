-- Deletes the billing data of a user and returns the number of changed rows. The caller has locked the customer.
--
-- The user's own events keep only their ids and dates, so that a repeated event is not applied. Events of other users
-- stay, also if the user now owns their transactions, because they show who had a trial and who owned a subscription; a
-- random placeholder replaces the user's identities in them.
create or replace function headroom.forget_billing(p_user_id uuid, p_customer_id bigint) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    -- These are the user's identities in events: the UUID, and the digests of the user's store ids.
    v_identities constant text[] := array_append(headroom.store_id_digests(p_user_id, p_customer_id), p_user_id::text);
    v_pattern constant text := array_to_string(v_identities, '|');
    v_replacement constant text := 'forgotten:' || encode(sha256(convert_to(gen_random_uuid()::text, 'UTF8')), 'hex');
    -- These are the same identities of the other users in the events.
    v_other_identities constant text[] := array(
        select distinct unnest(array_append(
            headroom.store_id_digests(others.identity::uuid, p_customer_id), others.identity
        ))
        from (
            select distinct members.identity
            from headroom.customer_identities(p_customer_id) as lists
            cross join lateral unnest(lists.identities) as members (identity)
            where members.identity ~ '^[0-9a-f-]{36}$' and members.identity <> p_user_id::text
        ) as others
    );
    v_has_others boolean;
    v_rows bigint;
    v_count bigint;
begin
    select coalesce(bool_or(
        events.user_id <> p_user_id or headroom.belongs_to_other_user(events.identities, p_user_id, v_other_identities)
    ), false)
    into v_has_others
    from headroom.billing_events as events where events.customer_id = p_customer_id;
    update headroom.billing_events as events
    set customer_id = null, user_id = null, identities = '{}', effects = null, payload = null,
        resulting_entitlement = null, outcome = 'forgotten', missing_prerequisite = null, unmapped_product = null,
        problem = null
    where events.customer_id = p_customer_id and (
        events.user_id = p_user_id
        or events.user_id is null and events.identities <@ v_identities and events.identities <> '{}'
        -- These are transfers in which every other user is forgotten already.
        or events.user_id is null and events.effects::text ~* v_pattern and not exists (
            select from headroom.effect_identities(events.effects) as lists (identities)
            cross join lateral unnest(lists.identities) as members (identity)
            where members.identity <> all(v_identities) and members.identity not like 'forgotten:%'
        )
    )
        -- Events that support the subscription of another user, or may do so later, stay.
        and not headroom.belongs_to_other_user(events.identities, p_user_id, v_other_identities)
        and not (
            v_has_others and (events.missing_prerequisite = 'user' or exists (
                select from headroom.effect_identities(events.effects) as lists (identities)
                where not lists.identities <@ v_identities
            )) is true
        );
    get diagnostics v_rows = row_count;
    update headroom.billing_events as events
    set user_id = nullif(events.user_id, p_user_id),
        resulting_entitlement = case when events.user_id <> p_user_id then events.resulting_entitlement end,
        identities = regexp_replace(events.identities::text, v_pattern, v_replacement, 'gi')::text[],
        effects = regexp_replace(events.effects::text, v_pattern, v_replacement, 'gi')::jsonb,
        payload = regexp_replace(events.payload::text, v_pattern, v_replacement, 'gi')::jsonb,
        problem = regexp_replace(events.problem, v_pattern, v_replacement, 'gi')
    where events.customer_id = p_customer_id and (
        events.user_id = p_user_id or events.identities && v_identities or events.effects::text ~* v_pattern
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
        or substr(names.name, strpos(names.name, ':') + 1) = any(v_identities)
        -- These are transactions that only the user's own events mention.
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
