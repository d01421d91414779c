-- Commits after other changes, to learn whether they are replicated. $1 uuid: lane.
update headroom.lane_receipts as receipt set moved_at = headroom.now()
where receipt.bucket = 0 and receipt.lane = $1;
