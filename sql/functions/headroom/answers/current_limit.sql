-- Returns the limit of the answer that CHECK would give now. A view cannot use a field of headroom.current_answer:
-- Citus could not plan that.
create or replace function headroom.current_limit(p_user_id uuid) returns integer
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_answer constant headroom.answer := headroom.current_answer(p_user_id);
begin
    return v_answer."limit";
end
$$;
