-- Writes usage rows. Parameters: headroom.write_usage_rows. $8 timestamptz[], $9 timestamptz[], $10 integer[],
-- $11 integer[]: the users' open windows, when they opened and when they end, messages counted and held; the first is
-- null for a user without one. Empty if no user's plan has windows.
select headroom.write_usage_rows(
    0::smallint, $1::text[]::headroom.entitlement[], $2::bigint[], $3::integer[], $4::integer[], $5::integer[],
    $6::integer[], $7::timestamptz[],
    case
        when $8::timestamptz[] <> '{}' then array(
            select case
                when opened.opened_at is not null then row(
                    null, opened.opened_at, opened.ends_at, opened.used, opened.held, null
                )::headroom.usage_window
            end
            from unnest($8::timestamptz[], $9::timestamptz[], $10::integer[], $11::integer[])
                as opened (opened_at, ends_at, used, held)
        )
    end
);
