-- Advances a lane's receipt to the number of a change that is not a batch. No row if this number was already executed.
-- $1 uuid: lane. $2 bigint: number of the change.
update headroom.lane_receipts as receipt
set number = $2::bigint, counts = null, answers = null, updated_at = headroom.now()
where receipt.bucket = 0 and receipt.lane = $1 and receipt.number = $2::bigint - 1
returning receipt.number;
