-- All that follows from a notification that is kept, or that is kept in other words than before: whose transactions are,
-- what it does, and what waited for it.
create or replace function headroom.settle_store_notification(
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
revoke all on function headroom.settle_store_notification(text, text, boolean) from public;
grant execute on function headroom.settle_store_notification(text, text, boolean) to headroom_service;
