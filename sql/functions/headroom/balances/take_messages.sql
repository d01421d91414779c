-- Takes messages of a user's billing period from balances, as many as there are, in the order of
-- headroom.live_balances. Returns their number. The caller has locked the usage row, to which no balances are attached.
create or replace function headroom.take_messages(
    p_user_id uuid, p_billing_period text, p_messages bigint, p_at timestamptz
) returns integer
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_left bigint := coalesce(greatest(p_messages, 0), 0);
    v_balance headroom.balance;
begin
    foreach v_balance in array headroom.live_balances(p_user_id, p_at) loop
        exit when v_left = 0;
        continue when v_balance.messages = 0;
        perform headroom.charge_balance(
            p_user_id, p_billing_period, v_balance.key, least(v_left, v_balance.messages)::integer
        );
        v_left := greatest(v_left - v_balance.messages, 0);
    end loop;
    return coalesce(greatest(p_messages, 0), 0) - v_left;
end
$$;
