-- Writes usage rows. Parameters: headroom.write_usage_rows.
select headroom.write_usage_rows(
    0::smallint, $1::uuid[], $2::text[], $3::bigint[], $4::integer[], $5::integer[], $6::integer[], $7::integer[],
    $8::integer[], $9::text[], $10::text[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[], $14::text[],
    $15::boolean[], $16::timestamptz[], $17::integer[]
);
