-- Returns why a token is invalid, regardless of its dates; null if it is valid. The constraints of headroom.tokens
-- forbid such rows, so a constraint was removed or rows were loaded without it. The text goes to logs and contains no
-- value.
create or replace function headroom.token_problem(
    p_name text, p_scopes text[], p_digest bytea, p_expires_at timestamptz
) returns text
    language sql immutable parallel safe
    return case
        when p_name is null or p_name !~ '^[a-z0-9_.-]{1,64}$' or p_name = 'default'
            then 'the name is not 1 to 64 of a-z, 0-9, _, . and -'
        when p_scopes is null or pg_catalog.cardinality(p_scopes) not between 1 and 3
            or not p_scopes <@ array['chat', 'dashboard', 'operator']
            then 'the scopes are not some of chat, dashboard and operator'
        when p_digest is null or pg_catalog.octet_length(p_digest) <> 32
            then 'the digest is not the SHA-256 of a token'
        when not headroom.is_instant(p_expires_at)
            then 'expires_at is not in the years 2000 to 9999'
    end;
