-- Returns the fields of the answer that CHECK would give now. For views: their readers may not read the tables. Null if
-- a row of the user has an invalid value.
create or replace function headroom.current_answer(p_user_id uuid) returns headroom.answer
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_snapshot constant headroom.usage_snapshot := headroom.current_snapshot(p_user_id, null);
begin
    return case when v_snapshot.plan is not null then headroom.format_answer(p_user_id, v_snapshot, 1) end;
end
$$;
grant execute on function headroom.current_answer(uuid) to headroom_operator, headroom_dashboard;
alter function headroom.current_answer(uuid) owner to headroom_service;
