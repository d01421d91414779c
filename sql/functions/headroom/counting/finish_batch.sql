-- Stores the counts of a batch in the lane's receipt, and returns p_batch with them and with the rows of
-- p_returned_users. Raises the errors of headroom.raise_other_receipt. Parameters as in headroom.count_batch;
-- p_key_messages: null, or the messages of each user's key. count_batch has the same statements written out, because
-- a call takes a hundredth of the time of a small batch.
create or replace function headroom.finish_batch(
    p_bucket smallint, p_lane uuid, p_number bigint, p_users uuid[], p_periods text[], p_period_ordinals integer[],
    p_counts bigint[], p_returned_users uuid[], p_key_messages integer[], p_batch headroom.counted_batch,
    p_at timestamptz
) returns headroom.counted_batch
    language plpgsql
as $$
declare
    v_batch headroom.counted_batch := p_batch;
begin
    update headroom.lane_receipts as receipt
    set number = p_number, counts = p_counts, answers = null, updated_at = p_at
    where receipt.bucket = p_bucket and receipt.lane = p_lane and receipt.number = p_number - 1;
    if not found then
        perform headroom.raise_other_receipt(p_bucket, p_lane, p_number);
    end if;
    v_batch.counts := p_counts;
    v_batch.observed_at := p_at;
    if p_returned_users <> '{}' then
        v_batch.usage_rows := headroom.counted_rows(
            p_bucket, p_users, p_periods, p_period_ordinals, p_returned_users, p_key_messages
        );
    end if;
    return v_batch;
end
$$;
