-- Advances the receipt of a lane to the number of a batch, writes into it what the batch has counted, and returns that.
-- Raises HR013 or HR001 if the receipt is not at the number before (headroom.raise_other_receipt).
create or replace function headroom.write_counts(
    p_bucket smallint, p_lane uuid, p_number bigint, p_counts bigint[], p_at timestamptz
) returns bigint[]
    language plpgsql
as $$
begin
    update headroom.lane_receipts as receipt
    set number = p_number, counts = p_counts, answers = null, updated_at = p_at
    where receipt.bucket = p_bucket and receipt.lane = p_lane and receipt.number = p_number - 1;
    if not found then
        perform headroom.raise_other_receipt(p_bucket, p_lane, p_number);
    end if;
    return p_counts;
end
$$;
