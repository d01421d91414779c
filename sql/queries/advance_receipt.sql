-- Advances a lane's receipt to the number of a change that is not a batch. No row if this number was already executed.
-- $1 smallint: bucket of the receipt. $2 uuid: lane. $3 bigint: number of the change.
update headroom.lane_receipts as receipt
set number = $3::bigint, counts = null, answers = null, updated_at = headroom.now()
where receipt.bucket = $1 and receipt.lane = $2 and receipt.number = $3::bigint - 1
returning receipt.number;
