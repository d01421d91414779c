-- Reads which server has each bucket of a distributed database, in the order in which the servers were added. There is
-- no row if there is one server. A bucket is missing while its server is not active. Hosts and ports are those of the
-- primary, and then of its standbys.
select
    placements.bucket::integer, placements.node_number, placements.hosts, placements.ports, placements.is_coordinator
from headroom.bucket_placements() as placements
order by placements.node_number, placements.bucket;
