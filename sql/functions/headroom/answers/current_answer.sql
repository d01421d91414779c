-- Returns the fields of the answer that CHECK would give now; null if a row of the user has an invalid value. Views
-- call it, because their readers may not read the tables.
create or replace function headroom.current_answer(p_user_id uuid) returns headroom.answer
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_snapshot constant headroom.usage_snapshot := headroom.current_snapshot(p_user_id, null);
    v_is_refused constant boolean := not headroom.may_send(v_snapshot, 1);
    v_answer headroom.answer;
begin
    if v_snapshot.plan is null then
        return null;
    end if;
    -- headroom.format_answer takes an answer about messages that were not counted for a refusal.
    v_answer := headroom.format_answer(p_user_id, v_snapshot, v_is_refused::integer);
    if not v_is_refused then
        v_answer.status := 'ALLOWED';
        v_answer.shadow := nullif(not headroom.snapshot_fits(v_snapshot, 1), false);
    end if;
    return v_answer;
end
$$;
