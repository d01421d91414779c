-- Returns the messages counted or held in a user's open window; 0 if none is open (headroom.open_window). Views call
-- it, because their readers may not read the tables.
create or replace function headroom.window_taken(p_user_id uuid, p_window_seconds integer, p_at timestamptz)
    returns bigint
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_window constant headroom.usage_window := headroom.open_window(p_user_id, p_window_seconds, p_at);
begin
    return coalesce(v_window.used::bigint + v_window.held, 0);
end
$$;
