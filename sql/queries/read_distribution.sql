-- Reads how far a database is distributed, on a server that has the extension Citus.
select
    (select nodename || ':' || nodeport from pg_dist_node where groupid = 0 and noderole = 'primary') as coordinator,
    array(
        select nodename || ':' || nodeport from pg_dist_node
        where groupid <> 0 and noderole = 'primary' and isactive order by nodeid
    ) as workers,
    headroom.is_distributed() as is_converted,
    (
        select count(*) from pg_dist_partition
        where logicalrelid = 'public.message_usage'::regclass and partmethod = 'h'
    ) > 0 as has_shards,
    (select count(*) from pg_dist_shard where logicalrelid = 'public.message_usage'::regclass)::integer as shards;
