-- Takes back the events of a notification that is about to be read anew. The caller holds the rows of their users.
create or replace function headroom.undo_store_events(p_source text, p_id text, p_told text) returns void
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
revoke all on function headroom.undo_store_events(text, text, text) from public;
grant execute on function headroom.undo_store_events(text, text, text) to headroom_service;
