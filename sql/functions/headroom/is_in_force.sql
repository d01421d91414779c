-- set_plan says all about a user: what stores told until then, or tell later of the time before, is without effect.
create or replace function headroom.is_in_force(
    p_event headroom.store_events, p_declared_at timestamptz
) returns boolean
    language sql immutable parallel safe
    return p_declared_at is null
        or ((p_event).event_at >= p_declared_at and (p_event).received_at >= p_declared_at)
        or coalesce((p_event).transferred_at >= p_declared_at, false);
revoke all on function headroom.is_in_force(headroom.store_events, timestamptz) from public;
grant execute on function headroom.is_in_force(headroom.store_events, timestamptz) to headroom_service;
