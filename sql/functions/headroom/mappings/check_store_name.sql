-- Raises an error if p_source or p_name is not a valid name. p_kind: product or entitlement.
create or replace function headroom.check_store_name(p_kind text, p_source text, p_name text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if p_source is null or p_name is null then
        raise exception 'p_source and p_% must not be null', p_kind using errcode = 'null_value_not_allowed';
    elsif p_source !~ '^[a-z][a-z0-9_]{0,31}$' or p_name !~ '^[^[:cntrl:]]{1,255}$' then
        raise exception 'p_source or p_% is not a valid name', p_kind
            using errcode = 'invalid_parameter_value', hint = format(
                'A source is a store''s name, such as revenuecat: a lower-case letter and up to 31 of a-z, 0-9 and _. '
                'The %s has 1 to 255 characters, none of them a control character.', p_kind
            );
    end if;
end
$$;
