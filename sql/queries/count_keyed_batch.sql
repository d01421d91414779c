-- As count_batch, where some of the messages have keys.
select counted.*
from headroom.count_batch(
    0::smallint, $1, $2::bigint, $3::uuid[], $4::text[], $5::integer[], $6::bigint[], $7::bigint[],
    $8::text[], $9::integer[], $10::bigint[]
) as counted;
