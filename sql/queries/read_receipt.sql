-- Reads what a lane's newest committed batch counted, after a batch that was sent again has returned no row. $1 uuid:
-- lane.
select receipt.number, receipt.counts
from headroom.lane_receipts as receipt
where receipt.bucket = 0 and receipt.lane = $1;
