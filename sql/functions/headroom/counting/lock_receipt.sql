-- Locks the receipt of a lane for the batch p_number, whose requests are decided one by one. Returns null if that batch
-- was not executed yet. If it was, over a connection that was then lost, these are the answers that it has stored. The
-- lock waits for a first transaction that is still running. Raises HR001 if the receipt is at another number.
--
-- p_buckets_revision: the revision of headroom.bucket_map by which the caller knows the users' bucket. Raises HR012 if
-- that is not the present one, which cannot change until the transaction ends (headroom.divide_users).
create or replace function headroom.lock_receipt(
    p_bucket smallint, p_lane uuid, p_number bigint, p_buckets_revision integer
) returns text
    language plpgsql
as $$
declare
    v_number bigint;
    v_answers text;
    v_buckets_revision integer;
begin
    perform headroom.await_division();
    select receipt.number, receipt.answers into v_number, v_answers
    from headroom.lane_receipts as receipt
    where receipt.bucket = p_bucket and receipt.lane = p_lane for update;
    if v_number = p_number then
        return coalesce(v_answers, '');
    elsif v_number is distinct from p_number - 1 then
        perform headroom.raise_other_receipt(p_bucket, p_lane, p_number);
    end if;
    select revised.buckets_revision into v_buckets_revision from headroom.present_revisions as revised;
    if v_buckets_revision <> p_buckets_revision then
        raise exception 'the division of users into buckets has changed' using errcode = 'HR012';
    end if;
    return null;
end
$$;
