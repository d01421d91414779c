-- Reads what a lane's newest committed batch in a bucket counted, after a batch that was sent again has returned no
-- row. $1 smallint: bucket. $2 uuid: lane.
select receipt.number, receipt.counts
from headroom.lane_receipts as receipt
where receipt.bucket = $1 and receipt.lane = $2;
