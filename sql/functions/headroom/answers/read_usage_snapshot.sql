-- Returns a user's usage snapshot now. Writes nothing: a trial that has not started is returned as if it started now.
create or replace function headroom.read_usage_snapshot(p_user_id uuid, p_unknown_users_policy text)
    returns headroom.usage_snapshot
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return headroom.read_open_usage(headroom.entitlement(p_user_id, headroom.now(), p_unknown_users_policy));
end
$$;
