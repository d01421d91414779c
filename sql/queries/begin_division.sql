-- Prepares the division of the database into buckets: headroom.begin_division. $1 integer: number of buckets.
select headroom.begin_division(headroom.bucket_values($1::integer));
