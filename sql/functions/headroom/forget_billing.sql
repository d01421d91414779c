-- Deletes what is known of a user from stores, and returns how many rows that concerned. The user's own events are
-- blanked: that they came stays, so that a repetition brings nobody back. Events of others stay, also where the user owns
-- their transactions now, because they still say who had a trial. In those that name the user, an invented name takes the
-- user's place, for they still say whose a subscription was. The caller holds the customer.
create or replace function headroom.forget_billing(p_user_id uuid, p_customer_id bigint) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_names constant text[] := array_append(headroom.digests_of(p_user_id, p_customer_id), p_user_id::text);
    v_pattern constant text := array_to_string(v_names, '|');
    v_invented constant text := 'forgotten:' || encode(sha256(convert_to(gen_random_uuid()::text, 'UTF8')), 'hex');
    -- Other users whom the events name, and the digests of their store ids.
    v_others constant text[] := array(
        select distinct unnest(array_append(headroom.digests_of(others.name::uuid, p_customer_id), others.name))
        from (
            select distinct names.name
            from headroom.billing_events as events
            cross join lateral (
                select events.identities as identities
                union all
                select headroom.names_in(events.effects)
            ) as named (identities)
            cross join lateral unnest(named.identities) as names (name)
            where events.customer_id = p_customer_id and names.name ~ '^[0-9a-f-]{36}$' and names.name <> p_user_id::text
        ) as others
    );
    v_has_others boolean;
    v_rows bigint;
    v_count bigint;
begin
    select coalesce(bool_or(events.user_id <> p_user_id or headroom.is_of_others(events.identities, p_user_id, v_others)), false)
    into v_has_others
    from headroom.billing_events as events where events.customer_id = p_customer_id;
    update headroom.billing_events as events
    set customer_id = null, user_id = null, identities = '{}', effects = null, payload = null, effect = null,
        outcome = 'forgotten', lacks = null, lacks_product = null, problem = null
    where events.customer_id = p_customer_id and (
        events.user_id = p_user_id
        or events.user_id is null and events.identities <@ v_names and events.identities <> '{}'
        -- Transfers between users of whom this is the last to be forgotten.
        or events.user_id is null and events.effects::text ~* v_pattern and not exists (
            select from headroom.names_in(events.effects) as lists (names)
            cross join lateral unnest(lists.names) as names (name)
            where names.name <> all (v_names) and names.name not like 'forgotten:%'
        )
    )
        -- What others' subscriptions came by, or may come by, stays.
        and not headroom.is_of_others(events.identities, p_user_id, v_others)
        and not (
            v_has_others and (events.lacks = 'user' or exists (
                select from headroom.names_in(events.effects) as lists (names) where not lists.names <@ v_names
            )) is true
        );
    get diagnostics v_rows = row_count;
    update headroom.billing_events as events
    set user_id = nullif(events.user_id, p_user_id), effect = case when events.user_id <> p_user_id then events.effect end,
        identities = regexp_replace(events.identities::text, v_pattern, v_invented, 'gi')::text[],
        effects = regexp_replace(events.effects::text, v_pattern, v_invented, 'gi')::jsonb,
        payload = regexp_replace(events.payload::text, v_pattern, v_invented, 'gi')::jsonb,
        problem = regexp_replace(events.problem, v_pattern, v_invented, 'gi')
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
        or substr(names.name, strpos(names.name, ':') + 1) = any (v_names)
        -- Transactions of which only the user's own events told.
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
