-- Returns those of the servers $1:$2 and $3:$4 that are no primary of a node any more, or that the coordinator does not
-- reach.
select format('%s:%s', server.host, server.port)
from (values ($1::text, $2::integer), ($3::text, $4::integer)) as server (host, port)
where
    not exists (
        select from pg_dist_node as node
        where node.nodename = server.host and node.nodeport = server.port and node.noderole = 'primary'
    )
    or not citus_check_connection_to_node(server.host, server.port);
