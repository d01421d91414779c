-- Returns whether an instant is valid, as in the domain headroom.instant: null, or in the years 2000 to 9999 (UTC).
-- Infinity is invalid. PostgreSQL inlines the function.
create or replace function headroom.is_instant(p_at timestamptz) returns boolean
    language sql immutable parallel safe
    return p_at is null or (p_at >= '2000-01-01T00:00:00Z' and p_at < '10000-01-01T00:00:00Z');
