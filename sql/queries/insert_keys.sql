-- Inserts the rows of new keys. Raises unique_violation if another session has used one of them meanwhile. Parameters:
-- headroom.key_rows.
insert into headroom.message_keys
select key.* from headroom.key_rows(
    $1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::bigint[],
    $9::integer[], $10::integer[], $11::integer[], $12::integer[], $13::integer[], $14::integer[], $15::integer[],
    $16::integer[], $17::timestamptz[], $18::integer[], $19::integer[], $20::integer[], $21::integer[],
    $22::integer[], $23::integer[], $24::text[]
) as key;
