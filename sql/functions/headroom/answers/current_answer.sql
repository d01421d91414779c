-- Returns the fields of the answer that CHECK would give now. Views call it, because their readers may not read the
-- tables. It is null if a row of the user has an invalid value, so that a report of all users does not fail.
create or replace function headroom.current_answer(p_user_id uuid) returns headroom.answer
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_snapshot headroom.usage_snapshot;
begin
    begin
        v_snapshot := headroom.read_usage_snapshot(p_user_id, headroom.unknown_users_policy());
    exception
        -- HR006 is an invalid row (headroom.raise_invalid_row); raise_exception, that users without a subscription have
        -- no plan; invalid_parameter_value, that PostgreSQL does not know the plan's time zone any more.
        when sqlstate 'HR006' or raise_exception or invalid_parameter_value then
            return null;
    end;
    return headroom.format_answer(p_user_id, v_snapshot, 1);
end
$$;
