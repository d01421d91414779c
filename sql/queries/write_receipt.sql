-- Advances a lane's receipt, which the transaction has locked, and stores the answers of the batch. $1 uuid: lane.
-- $2 bigint: number of the batch. $3 text: answers.
update headroom.lane_receipts as receipt
set number = $2::bigint, counts = null, answers = $3, updated_at = headroom.now()
where receipt.bucket = 0 and receipt.lane = $1;
