-- Keeps an event; false when it is there already.
create or replace function headroom.keep_store_event(p_event headroom.store_events, p_outcome text) returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_event headroom.store_events := p_event;
begin
    v_event.outcome := p_outcome;
    insert into headroom.store_events select v_event.* on conflict (source, event_id) do nothing;
    return found;
end
$$;
revoke all on function headroom.keep_store_event(headroom.store_events, text) from public;
grant execute on function headroom.keep_store_event(headroom.store_events, text) to headroom_service;
