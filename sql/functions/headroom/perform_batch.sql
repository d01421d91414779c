-- Performs the slow-path requests of a lane's batch exactly once, and returns one usage snapshot per request. p_users
-- is ascending. The requests of user i are at [p_first[i] .. p_first[i + 1] - 1] of the other arrays, which are those
-- of headroom.perform_requests.
--
-- If the lane sends the same number again after a lost connection, the answer is that of the first time if that was
-- committed. The lock on the receipt waits for a first transaction that is still running.
create or replace function headroom.perform_batch(
    p_lane uuid, p_number bigint, p_users uuid[], p_first integer[], p_verbs text[], p_messages integer[],
    p_keys text[], p_ttls_s integer[], p_unknown_users_policy text
) returns headroom.usage_snapshot[]
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_receipt headroom.lane_receipts;
    v_snapshots headroom.usage_snapshot[];
    v_last integer;
begin
    select * into v_receipt from headroom.lane_receipts where bucket = 0 and lane = p_lane for update;
    if v_receipt.number = p_number then
        return v_receipt.answers::headroom.usage_snapshot[];
    elsif v_receipt.number is distinct from p_number - 1 then
        -- The receipt was deleted while the lane was idle, or this is another database.
        raise exception 'lane % is at number %, not at %', p_lane, v_receipt.number, p_number - 1
            using errcode = 'HR001';
    end if;
    for i in 1 .. cardinality(p_users) loop
        v_last := coalesce(p_first[i + 1] - 1, cardinality(p_verbs));
        v_snapshots := v_snapshots || headroom.perform_requests(
            p_users[i], p_verbs[p_first[i] : v_last], p_messages[p_first[i] : v_last], p_keys[p_first[i] : v_last],
            p_ttls_s[p_first[i] : v_last], p_unknown_users_policy
        );
    end loop;
    update headroom.lane_receipts
    set number = p_number, counts = null, answers = v_snapshots::text, updated_at = headroom.now()
    where bucket = 0 and lane = p_lane;
    return v_snapshots;
end
$$;
