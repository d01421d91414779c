-- Keeps an event whose user is known and computes what follows. p_told says who told it, in the store's words; null is
-- kind and source. Returns what became of it.
create or replace function headroom.apply_read_event(p_event headroom.store_events, p_told text) returns text
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
    perform headroom.lock_subscriber(p_event.user_id);
    select * into strict v_subscriber from headroom.subscribers as subscriber
    where subscriber.user_id = p_event.user_id;
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
revoke all on function headroom.apply_read_event(headroom.store_events, text) from public;
grant execute on function headroom.apply_read_event(headroom.store_events, text) to headroom_service;
