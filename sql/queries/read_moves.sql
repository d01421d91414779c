-- Reads which shards must move so that each worker has about as many. If $1 is true, they are only those of workers
-- that are to have none. The other tables of users move along.
select shardid, sourcename, sourceport, targetname, targetport
from get_rebalance_table_shards_plan(
    'public.message_usage', rebalance_strategy => 'by_shard_count', drain_only => $1::boolean
)
where table_name = 'public.message_usage'::regclass;
