-- A commit after others, to learn that they are replicated. $1 uuid: the lane.
update headroom.lane_receipts as receipt set moved_at = headroom.now() where receipt.bucket = 0 and receipt.lane = $1;
