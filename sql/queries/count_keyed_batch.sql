-- Counts a batch in which requests have keys or parts. Parameters and result: headroom.count_keyed_batch.
-- PostgreSQL would store and read again what a function in FROM returns.
select (counting.batch).*
from (
    select headroom.count_keyed_batch(
        $1::smallint, $2, $3::bigint, $4::uuid[], $5::text[], $6::integer[], $7::bigint[], $8::bigint[], $9::text[],
        $10::text[], $11::integer[], $12::bigint[], $13::integer[], $14::text[], $15::integer, $16::text[],
        $17::integer[], $18::text[], $19::text[], $20::bigint[], $21::integer[], $22::integer[], $23::integer[],
        $24::integer
    ) as batch
    -- This is always true. Without it, Citus plans the call again each time.
    where $2 is not null
) as counting;
