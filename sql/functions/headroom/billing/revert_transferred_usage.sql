-- Subtracts what a transfer has added to the receiver's counts and window: an event that arrived later shows that the
-- receiver had other access at that time, or that the subscription came from another user. Closed periods, windows that
-- have ended, and rows that were reset since then, stay as they are. Locks the receiver's usage rows.
--
-- p_transfer: {"source", "event", "giver", "receiver"}.
create or replace function headroom.revert_transferred_usage(p_transfer jsonb, p_reason text, p_event_id text)
    returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_receiver constant uuid := (p_transfer ->> 'receiver')::uuid;
    v_raised jsonb;
    v_raised_window jsonb;
    v_period text;
    v_messages integer;
    v_generation bigint;
    v_parts jsonb;
    v_row public.message_usage;
begin
    delete from headroom.usage_transfers as transfers
    where transfers.source = p_transfer ->> 'source' and transfers.event_id = p_transfer ->> 'event'
        and transfers.giver = (p_transfer ->> 'giver')::uuid and transfers.receiver = v_receiver
    returning transfers.raised, transfers.raised_window into v_raised, v_raised_window;
    perform headroom.detach_balances(v_receiver, headroom.now());
    for v_period, v_messages, v_generation, v_parts in
        select
            periods.key, (periods.value ->> 'messages')::integer, (periods.value ->> 'generation')::bigint,
            periods.value -> 'parts'
        from jsonb_each(v_raised) as periods
        order by periods.key
    loop
        v_row := headroom.lock_usage(v_receiver, v_period);
        continue when v_row.generation is distinct from v_generation or v_row.resets_at <= headroom.now();
        v_messages := least(v_messages, v_row.message_count);
        -- "released" is raised, too, as by RELEASE: the row's generation stays, so the receiver's own messages can
        -- still be released.
        update public.message_usage
        set message_count = message_count - v_messages,
            released = least(released::bigint + v_messages, 2147483647),
            updated_at = headroom.now(), usable_until = '-infinity'
        where bucket = headroom.bucket_of(v_receiver) and user_id = v_receiver and billing_period = v_period;
        perform headroom.record_change(
            v_receiver, v_period, 'store_event', headroom.usage_record(v_period, v_row.message_count, v_row."limit"),
            headroom.usage_record(v_period, v_row.message_count - v_messages, v_row."limit"), p_reason, p_event_id
        );
        perform headroom.revert_transferred_parts(v_receiver, v_period, v_parts);
    end loop;
    perform headroom.attach_balances(
        v_receiver, (headroom.entitlement(v_receiver, headroom.now(), 'deny')).billing_period, headroom.now()
    );
    if v_raised_window is not null then
        perform headroom.revert_transferred_window(v_receiver, v_raised_window);
        perform headroom.revert_transferred_part_windows(v_receiver, v_raised_window -> 'parts');
    end if;
end
$$;
