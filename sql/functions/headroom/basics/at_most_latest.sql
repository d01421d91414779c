-- Returns p_at, or the last valid instant if p_at is later, such as a sum; null for null. PostgreSQL inlines the
-- function.
create or replace function headroom.at_most_latest(p_at timestamptz) returns timestamptz
    language sql immutable parallel safe
    return case
        when p_at > '9999-12-31T23:59:59.999999Z' then '9999-12-31T23:59:59.999999Z'
        else p_at
    end;
