-- Gives back to balances what expired holds of a user have taken, in all billing periods or in one. No balances are
-- attached to the usage rows of these holds, and the caller has locked them.
create or replace function headroom.return_expired_holds(
    p_user_id uuid, p_at timestamptz, p_billing_period text default null
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_hold record;
begin
    for v_hold in
        select holds.* from headroom.expired_balance_holds(p_user_id, p_at) as holds
        where holds.billing_period = coalesce(p_billing_period, holds.billing_period)
    loop
        perform headroom.charge_balance(p_user_id, v_hold.billing_period, v_hold.key, -v_hold.messages);
        update headroom.message_keys set parts = parts - 'charges'
        where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and key = v_hold.hold;
    end loop;
end
$$;
