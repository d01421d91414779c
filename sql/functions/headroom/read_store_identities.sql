-- Refuses a list that is none of identities, by the name of its field.
create or replace function headroom.read_store_identities(p_field text, p_value jsonb) returns text[]
    language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
    v_identities text[];
begin
    if p_value is null or jsonb_typeof(p_value) = 'null' then
        return '{}';
    elsif jsonb_typeof(p_value) <> 'array' or jsonb_array_length(p_value) > 256 or exists (
        select from jsonb_array_elements(p_value) as members (value)
        where jsonb_typeof(value) <> 'string'
            or value #>> '{}' !~ '^([0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|sha256:[0-9a-f]{64})$'
    ) then
        raise exception '% must be an array of at most 256 identities', quote_literal(p_field)
            using errcode = 'invalid_parameter_value',
                hint = 'An identity is a UUID, or sha256: and the 64 hexadecimal digits of the digest of anything else.';
    end if;
    select coalesce(array_agg(lower(members.value) order by members.ordinality), '{}') into v_identities
    from jsonb_array_elements_text(p_value) with ordinality as members (value, ordinality);
    return v_identities;
end
$$;
revoke all on function headroom.read_store_identities(text, jsonb) from public;
grant execute on function headroom.read_store_identities(text, jsonb) to headroom_service;
