-- Writes a lane's receipt only for the commit: a standby that confirms it has every earlier commit, too, and still
-- follows this server. It returns no row if the receipt is lost, and then nothing was written. $1 smallint: bucket. $2
-- uuid: lane.
update headroom.lane_receipts as receipt set updated_at = headroom.now()
where receipt.bucket = $1 and receipt.lane = $2
returning receipt.number;
