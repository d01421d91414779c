-- For the story of a user: an event that concerns a subscription, and yet had no effect.
create or replace function headroom.record_store_event(p_event headroom.store_events, p_outcome text) returns void
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
revoke all on function headroom.record_store_event(headroom.store_events, text) from public;
grant execute on function headroom.record_store_event(headroom.store_events, text) to headroom_service;
