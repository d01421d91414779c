-- Writes usage rows. Parameters: headroom.write_usage_rows. $9 timestamptz[], $10 timestamptz[], $11 integer[], $12
-- integer[]: the users' open windows, when they opened and when they end, messages counted and held. The first is null
-- for a user without one. All are empty if no user's plan has windows.
select headroom.write_usage_rows(
    $1::smallint, $2::text[]::headroom.entitlement[], $3::bigint[], $4::integer[], $5::integer[], $6::integer[],
    $7::integer[], $8::timestamptz[],
    case
        when $9::timestamptz[] <> '{}' then array(
            select case
                when opened.opened_at is not null then row(
                    null, opened.opened_at, opened.ends_at, opened.used, opened.held, null
                )::headroom.usage_window
            end
            from unnest($9::timestamptz[], $10::timestamptz[], $11::integer[], $12::integer[])
                as opened (opened_at, ends_at, used, held)
        )
    end
);
