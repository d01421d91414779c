-- Reads which server has each bucket of a distributed database, in the order in which the servers were added; no row
-- where there is one server. A bucket is missing while its server is not active.
select placements.bucket::integer, placements.host, placements.port, placements.is_coordinator
from headroom.bucket_placements() as placements
order by placements.node_number, placements.bucket;
