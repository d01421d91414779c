-- Returns what one user may send at p_at (headroom.entitlements). For several users, call that function once.
create or replace function headroom.entitlement(
    p_user_id uuid, p_at timestamptz, p_unknown_users_policy text
) returns headroom.entitlement
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_result headroom.entitlement;
begin
    select * into v_result
    from headroom.entitlements(headroom.bucket_of(p_user_id), array[p_user_id], p_at, p_unknown_users_policy);
    return v_result;
end
$$;
