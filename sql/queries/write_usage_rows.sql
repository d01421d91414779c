-- Writes usage rows. Parameters: headroom.write_usage_rows.
select headroom.write_usage_rows(
    0::smallint, $1::text[]::headroom.entitlement[], $2::bigint[], $3::integer[], $4::integer[], $5::integer[],
    $6::integer[], $7::timestamptz[]
);
