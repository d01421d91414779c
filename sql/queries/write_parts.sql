-- Writes what is counted of limits for parts of users' messages. Parameters: headroom.write_parts.
select headroom.write_parts(
    $1::smallint, $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::integer[], $8::integer[],
    $9::integer[], $10::timestamptz[], $11::timestamptz[], $12::integer[], $13::integer[], $14::integer[],
    $15::timestamptz[]
);
