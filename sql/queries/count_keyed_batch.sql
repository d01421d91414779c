-- Counts a batch in which requests have keys. Parameters and result: headroom.count_keyed_batch.
select counted.*
from headroom.count_keyed_batch(
    0::smallint, $1, $2::bigint, $3::uuid[], $4::text[], $5::integer[], $6::bigint[], $7::bigint[], $8::text[],
    $9::text[], $10::integer[], $11::bigint[], $12::integer[], null
) as counted;
