-- What a lane's newest committed batch counted: asked after a batch was sent again and found the gate closed, or when it
-- counted nothing, which looks the same.
--
-- $1 uuid: the lane.
select receipt.number, receipt.counts from headroom.lane_receipts as receipt where receipt.bucket = 0 and receipt.lane = $1;
