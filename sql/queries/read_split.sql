-- Reads how the one shard of message_usage is to be split and moved to the workers: the shard, the last hash of each
-- new shard but the last (headroom.bucket_values has one bucket for each), and the worker of each, in turns. There is
-- no row if there are several shards.
select
    shards.shardid as shard,
    array(
        select (numbers.n * (4294967296 / cardinality(map.buckets)) - 2147483649)::text
        from generate_series(1, cardinality(map.buckets) - 1) as numbers (n) order by numbers.n
    ) as split_points,
    array(
        select nodes.ids[1 + numbers.n % cardinality(nodes.ids)]
        from generate_series(0, cardinality(map.buckets) - 1) as numbers (n) order by numbers.n
    ) as workers
from headroom.bucket_map as map
cross join (
    select min(shardid) as shardid from pg_dist_shard
    where logicalrelid = 'public.message_usage'::regclass having count(*) = 1
) as shards
cross join (
    select array_agg(nodeid order by nodeid) as ids from pg_dist_node
    where isactive and shouldhaveshards and noderole = 'primary'
) as nodes;
