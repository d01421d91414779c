-- What a lane's change noted, asked when the change was made already by a connection that was lost.
--
-- $1 uuid: the lane. $2 bigint: the change's number.
select receipt.answers from headroom.lane_receipts as receipt
where receipt.bucket = 0 and receipt.lane = $1 and receipt.number = $2::bigint;
