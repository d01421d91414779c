-- Locks a lane's receipt for a batch: headroom.lock_receipt. $1 smallint: bucket. $2 uuid: lane. $3 bigint: number of
-- the batch. $4 integer: revision of the map of buckets by which the batch was grouped. answers: null if the batch was
-- not executed before.
select headroom.lock_receipt($1::smallint, $2, $3::bigint, $4::integer) as answers
-- This is always true. Without it, Citus plans the call again each time.
where $2 is not null;
