-- Returns the server that has each bucket, if Citus has distributed the rows of users over several; otherwise no row.
-- Servers that Citus has disabled are left out. Hosts and ports are those of the primary, and then of the standbys that
-- Citus knows, one of which may have been promoted without its knowledge.
create or replace function headroom.bucket_placements() returns table (
    bucket smallint, node_number integer, hosts text[], ports integer[], is_coordinator boolean
)
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    if not headroom.is_distributed() then
        return;
    end if;
    return query execute '
        select numbers.bucket, node.nodeid, servers.hosts, servers.ports, node.groupid = 0
        from headroom.bucket_map as map
        cross join unnest(map.buckets) as numbers (bucket)
        join pg_dist_placement as placement
            on placement.shardid = get_shard_id_for_distribution_column(''public.message_usage'', numbers.bucket)
        join pg_dist_node as node on node.groupid = placement.groupid
        cross join lateral (
            select array_agg(member.nodename order by member.noderole, member.nodeid) as hosts,
                array_agg(member.nodeport order by member.noderole, member.nodeid) as ports
            from pg_dist_node as member where member.groupid = node.groupid
        ) as servers
        where node.isactive and node.noderole = ''primary''::noderole and placement.shardstate = 1
    ';
end
$$;
