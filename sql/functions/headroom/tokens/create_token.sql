-- Stores a token by its digest and returns its number. The database never receives the token itself. A null
-- p_expires_at never expires.
create or replace function headroom.create_token(
    p_name text, p_scopes text[], p_digest bytea, p_expires_at timestamptz default null
) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_id bigint;
begin
    if p_name is null or p_scopes is null or p_digest is null then
        raise exception 'name, scopes and digest must be given' using errcode = 'null_value_not_allowed';
    end if;
    insert into headroom.tokens (name, scopes, digest, expires_at)
    values (p_name, p_scopes, p_digest, p_expires_at)
    returning id into v_id;
    return v_id;
end
$$;
