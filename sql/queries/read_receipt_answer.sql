-- Reads the answer of a lane's change from its receipt, for a change that was made before its connection was lost.
-- $1 smallint: bucket of the receipt. $2 uuid: lane. $3 bigint: number of the change.
select receipt.answers from headroom.lane_receipts as receipt
where receipt.bucket = $1 and receipt.lane = $2 and receipt.number = $3::bigint;
