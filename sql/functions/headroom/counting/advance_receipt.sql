-- Advances the receipt of a lane to the number of a change, and returns true. Raises HR001 if it is not at the number
-- before, so that the statements that were sent after it change nothing.
--
-- It has the owner's rights, like the functions that make changes: if Citus forwards a transaction, one user has to
-- make all changes of it.
create or replace function headroom.advance_receipt(p_bucket smallint, p_lane uuid, p_number bigint) returns boolean
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
begin
    update headroom.lane_receipts as receipt
    set number = p_number, counts = null, answers = null, updated_at = v_now
    where receipt.bucket = p_bucket and receipt.lane = p_lane and receipt.number = p_number - 1;
    if not found then
        raise exception 'lane % is not at number %', p_lane, p_number - 1 using errcode = 'HR001';
    end if;
    return true;
end
$$;
