-- Keeps what the fold will write over, when no event of a user is in force yet: without events, that is what holds.
-- Returns whether there was one. The caller holds the subscriber's row.
create or replace function headroom.note_declared(p_user_id uuid) returns boolean
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
revoke all on function headroom.note_declared(uuid) from public;
grant execute on function headroom.note_declared(uuid) to headroom_service;
