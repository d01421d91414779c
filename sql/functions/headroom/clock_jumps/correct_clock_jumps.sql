-- Corrects the rows of those users whose messages were counted while the database's clock was ahead
-- (headroom.correct_clock_jump), and returns whether there are any. p_ahead: users whose open row was written then. The
-- caller has locked the subscribers.
create or replace function headroom.correct_clock_jumps(
    p_entitlements headroom.entitlement[], p_ahead uuid[], p_at timestamptz
) returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_entitlement headroom.entitlement;
    v_is_corrected boolean := false;
begin
    for v_entitlement in
        select derived.* from unnest(p_entitlements) as derived
        where derived.user_id = any(p_ahead)
            or headroom.is_periodic(derived.cycle) and derived.spent_messages is not null
    loop
        perform headroom.correct_clock_jump(v_entitlement.user_id, v_entitlement, p_at);
        v_is_corrected := true;
    end loop;
    return v_is_corrected;
end
$$;
