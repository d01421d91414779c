-- Advances a lane's receipt, which the transaction has locked, and stores the answers of the batch. $1 smallint:
-- bucket. $2 uuid: lane. $3 bigint: number of the batch. $4 text: answers.
update headroom.lane_receipts as receipt
set number = $3::bigint, counts = null, answers = $4, updated_at = headroom.now()
where receipt.bucket = $1 and receipt.lane = $2;
