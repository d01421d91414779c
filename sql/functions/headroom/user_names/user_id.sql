-- Returns the id of the user with this name: a UUID is itself, and any other text is the UUID of version 5 of the text
-- in the namespace of the setting user-namespace. Raises invalid_parameter_value for a name that no user can have, and
-- for any name while the setting has never been set.
create or replace function headroom.user_id(p_name text) returns uuid
    language plpgsql stable strict security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_namespace uuid;
    v_hash bytea;
begin
    if p_name ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
        return p_name::uuid;
    end if;
    select namespace.id into v_namespace from headroom.user_namespace as namespace;
    if v_namespace is null then
        raise exception 'a user must be a UUID' using errcode = 'invalid_parameter_value',
            hint = 'To name users otherwise, start the service with the setting user-namespace.';
    elsif octet_length(convert_to(p_name, 'UTF8')) not between 1 and 255
        or p_name in ('.', '..') or p_name ~ '[\u0001-\u0020\u007f-\u009f]' then
        raise exception 'a user must be a UUID, or a text of 1 to 255 bytes without spaces and control characters, '
            'and not . or ..'
            using errcode = 'invalid_parameter_value';
    end if;
    v_hash := substr(headroom.sha1(uuid_send(v_namespace) || convert_to(p_name, 'UTF8')), 1, 16);
    -- These bits are the version and the variant.
    v_hash := set_byte(v_hash, 6, get_byte(v_hash, 6) & 15 | 80);
    v_hash := set_byte(v_hash, 8, get_byte(v_hash, 8) & 63 | 128);
    return encode(v_hash, 'hex')::uuid;
end
$$;
