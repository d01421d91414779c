-- Revokes a token and returns its name. Connections that use it are closed. Revoking it again changes nothing.
create or replace function headroom.revoke_token(p_id bigint) returns text
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_name text;
begin
    update headroom.tokens set revoked_at = headroom.now() where id = p_id and revoked_at is null;
    select name into v_name from headroom.tokens where id = p_id;
    if not found then
        raise exception 'there is no such token' using errcode = 'no_data_found';
    end if;
    return v_name;
end
$$;
