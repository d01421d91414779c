-- Moves users to their buckets: headroom.divide_users. $1 integer: the last part whose users are moved.
select headroom.divide_users($1::integer) as rows;
