-- Splits a shard of each table of users and moves the new ones to workers, while messages are counted. The parameters
-- are the row of read_split.sql. It needs a transaction of its own that reads no table before.
select citus_split_shard_by_split_points($1::bigint, $2::text[], $3::integer[], 'force_logical');
