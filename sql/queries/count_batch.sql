-- Counts a batch of messages without keys. Parameters and result: headroom.count_batch.
select counted.*
from headroom.count_batch(
    0::smallint, $1, $2::bigint, $3::uuid[], $4::text[], $5::integer[], $6::bigint[], $7::bigint[], null
) as counted;
