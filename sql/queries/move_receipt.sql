-- Moves a lane's receipt for a change that is not a batch; no row when this number was already done.
--
-- $1 uuid: the lane. $2 bigint: the change's number.
update headroom.lane_receipts as receipt
set number = $2::bigint, counts = null, answers = null, moved_at = headroom.now()
where receipt.bucket = 0 and receipt.lane = $1 and receipt.number = $2::bigint - 1
returning receipt.number;
