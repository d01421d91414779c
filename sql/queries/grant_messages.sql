-- Grants messages, and records in the lane's receipt whether the key had already granted them, so that the answer can
-- be repeated after a lost connection. $1 uuid: user. $2 integer: messages. $3 text: reason. $4 text: key. $5
-- timestamptz: when they end, infinity for never; null for messages of the current period. $6 text: what users without
-- a subscription get: trial, free or deny. $7 smallint: bucket of the receipt. $8 uuid: lane.
with grant_result as materialized (
    select headroom.grant_once($1, $2, $3, $4, $5, $6) as is_replay
)
update headroom.lane_receipts as receipt
set answers = case when grant_result.is_replay then 'replayed' end
from grant_result
where receipt.bucket = $7 and receipt.lane = $8
returning receipt.answers;
