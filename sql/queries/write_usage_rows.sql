-- Writes usage rows. Parameters: headroom.write_usage_rows. $8 text[], $9 timestamptz[], $10 timestamptz[],
-- $11 integer[], $12 integer[]: the columns of headroom.usage_window, with a null opened_at of users without an open
-- window; empty if no user's plan has windows.
select headroom.write_usage_rows(
    0::smallint, $1::text[]::headroom.entitlement[], $2::bigint[], $3::integer[], $4::integer[], $5::integer[],
    $6::integer[], $7::timestamptz[],
    case
        when $9::timestamptz[] <> '{}' then array(
            select case
                when opened.opened_at is not null then row(
                    opened.billing_period, opened.opened_at, opened.ends_at, opened.used, opened.held, null
                )::headroom.usage_window
            end
            from unnest($8::text[], $9::timestamptz[], $10::timestamptz[], $11::integer[], $12::integer[])
                as opened (billing_period, opened_at, ends_at, used, held)
        )
    end
);
