-- Returns the server that has each bucket, if Citus has distributed the rows of users over several; otherwise no row.
-- Only servers that Citus has not disabled.
create or replace function headroom.bucket_placements() returns table (
    bucket smallint, node_number integer, host text, port integer, is_coordinator boolean
)
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    if not headroom.is_distributed() then
        return;
    end if;
    return query execute '
        select numbers.bucket, node.nodeid, node.nodename, node.nodeport, node.groupid = 0
        from headroom.bucket_map as map
        cross join unnest(map.buckets) as numbers (bucket)
        join pg_dist_placement as placement
            on placement.shardid = get_shard_id_for_distribution_column(''public.message_usage'', numbers.bucket)
        join pg_dist_node as node on node.groupid = placement.groupid
        where node.isactive and node.noderole = ''primary''::noderole and placement.shardstate = 1
    ';
end
$$;
