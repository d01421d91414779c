-- Returns an instant as the protocol writes it, independent of the session's time zone.
create or replace function headroom.instant_text(p_at timestamptz) returns text
    language sql stable parallel safe
    return pg_catalog.to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');
