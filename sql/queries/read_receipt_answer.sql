-- Reads the answer of a lane's change from its receipt, for a change that was made before its connection was lost.
-- $1 uuid: lane. $2 bigint: number of the change.
select receipt.answers from headroom.lane_receipts as receipt
where receipt.bucket = 0 and receipt.lane = $1 and receipt.number = $2::bigint;
