-- Locks a lane's receipt for a batch: headroom.lock_receipt. $1 uuid: lane. $2 bigint: number of the batch. answers:
-- null if the batch was not executed before.
select headroom.lock_receipt(0::smallint, $1, $2::bigint, null) as answers;
