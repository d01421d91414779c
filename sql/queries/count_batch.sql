-- Counts a batch of messages without keys. Parameters and result: headroom.count_batch.
-- PostgreSQL would store and read again what a function in FROM returns.
select (counting.batch).*
from (
    select headroom.count_batch(
        $1::smallint, $2, $3::bigint, $4::uuid[], $5::text[], $6::integer[], $7::bigint[], $8::bigint[], $9::integer
    ) as batch
    -- This is always true. Without it, Citus plans the call again each time.
    where $2 is not null
) as counting;
