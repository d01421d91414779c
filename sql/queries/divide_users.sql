-- Moves users to their buckets: headroom.divide_users. $1 integer: the part up to which.
select headroom.divide_users($1::integer) as rows;
