-- Advances a lane's receipt to the number of a change that is not a batch: headroom.advance_receipt. $1 smallint:
-- bucket of the receipt. $2 uuid: lane. $3 bigint: number of the change.
select true as is_advanced where headroom.advance_receipt($1::smallint, $2::uuid, $3::bigint);
