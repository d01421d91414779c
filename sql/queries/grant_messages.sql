-- Grants, and notes in the lane's receipt whether the key had granted before: a lost reply is told again from there.
--
-- $1 uuid: user. $2 integer: messages. $3 text: why. $4 text: the key. $5 text: trial, free or deny, for unknown users.
-- $6 uuid: the lane.
with granted as materialized (
    select headroom.grant_once($1, $2, $3, $4, $5) as is_replay
)
update headroom.lane_receipts as receipt
set answers = case when granted.is_replay then 'replayed' end
from granted
where receipt.bucket = 0 and receipt.lane = $6
returning receipt.answers;
