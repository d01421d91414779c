-- Raises the error about a receipt that is not at the number before p_number. HR013: it is at p_number, because the
-- batch was counted over a connection that was then lost. HR001: it is at another number, or was deleted while the lane
-- was idle, or this is another database.
create or replace function headroom.raise_other_receipt(p_bucket smallint, p_lane uuid, p_number bigint) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    -- It sees what another session has committed since the caller's UPDATE waited for it.
    v_number constant bigint := (
        select receipt.number from headroom.lane_receipts as receipt
        where receipt.bucket = p_bucket and receipt.lane = p_lane
    );
begin
    raise exception 'lane % is at number %, not at %', p_lane, v_number, p_number - 1
        using errcode = case when v_number = p_number then 'HR013' else 'HR001' end;
end
$$;
