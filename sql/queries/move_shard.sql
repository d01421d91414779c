-- Moves a shard of each table of users to another worker, while messages are counted. The parameters are a row of
-- read_moves.sql.
select citus_move_shard_placement($1::bigint, $2::text, $3::integer, $4::text, $5::integer, 'force_logical');
