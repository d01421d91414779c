-- Locks the receipt of a lane for the batch p_number. Returns null if that batch was not executed yet. If it was, over
-- a connection that was then lost, returns the answers that it has stored. The lock waits for a first transaction that
-- is still running. Raises HR001 if the receipt is at another number.
--
-- p_buckets_revision: the revision of headroom.bucket_map by which the caller knows the users' bucket; null if the
-- caller checks it. Raises HR012 if that is not the present one, which cannot change until the transaction ends
-- (headroom.divide_users).
create or replace function headroom.lock_receipt(
    p_bucket smallint, p_lane uuid, p_number bigint, p_buckets_revision integer
) returns text
    language plpgsql
as $$
declare
    v_number bigint;
    v_answers text;
begin
    select receipt.number, receipt.answers into v_number, v_answers
    from headroom.lane_receipts as receipt
    where receipt.bucket = p_bucket and receipt.lane = p_lane for update;
    if v_number = p_number then
        return coalesce(v_answers, '');
    elsif v_number is distinct from p_number - 1 then
        -- The receipt was deleted while the lane was idle, or this is another database.
        raise exception 'lane % is at number %, not at %', p_lane, v_number, p_number - 1 using errcode = 'HR001';
    end if;
    -- There are two steps, because PL/pgSQL would read the revision even if there is nothing to compare.
    if p_buckets_revision is not null then
        if p_buckets_revision <> (select revised.buckets_revision from headroom.present_revisions as revised) then
            perform headroom.raise_outdated_buckets();
        end if;
    end if;
    return null;
end
$$;
