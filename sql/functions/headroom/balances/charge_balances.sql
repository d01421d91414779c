-- Takes messages from balances as requests have decided, gives back what they released, and attaches the balances to
-- the usage rows of the open periods again. The caller has locked the users with headroom.lock_and_read_users, and
-- written the usage rows.
--
-- p_users, p_periods: the users, and their open periods. Each of the other arrays has one element for each user, period
-- and balance: p_messages is negative for messages that are given back.
create or replace function headroom.charge_balances(
    p_users uuid[], p_periods text[], p_charged_users uuid[], p_charged_periods text[], p_keys text[],
    p_messages integer[]
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
begin
    for v_index in 1 .. cardinality(p_keys) loop
        perform headroom.charge_balance(
            p_charged_users[v_index], p_charged_periods[v_index], p_keys[v_index], p_messages[v_index]
        );
    end loop;
    for v_index in 1 .. cardinality(p_users) loop
        perform headroom.attach_balances(p_users[v_index], p_periods[v_index], v_now);
    end loop;
end
$$;
