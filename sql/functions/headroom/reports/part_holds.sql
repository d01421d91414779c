-- Returns the messages of a part that are held now, in the period and in the window (headroom.held_parts), as an array:
-- Citus lets a view over many users call no function in FROM (docs/decisions/0041-sql-that-citus-can-plan.md).
create or replace function headroom.part_holds(
    p_user_id uuid, p_billing_period text, p_kind text, p_name text, p_window_opened_at timestamptz
) returns integer[]
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_held integer;
    v_window_held integer;
begin
    select holds.held, holds.window_held into v_held, v_window_held
    from headroom.held_parts(
        p_user_id, p_billing_period, p_kind, p_name, p_window_opened_at, headroom.now()
    ) as holds;
    return array[v_held, v_window_held];
end
$$;
