-- Whether a transfer or an alias among these effects names anybody but the owner of p_names.
create or replace function headroom.names_others(p_effects jsonb, p_names text[]) returns boolean
    language sql immutable parallel safe
begin atomic
    select exists (
        select from jsonb_array_elements(p_effects) as effects (value)
        cross join lateral (
            values (effects.value -> 'from'), (effects.value -> 'to'), (effects.value -> 'identities')
        ) as lists (value)
        cross join lateral jsonb_array_elements_text(
            case jsonb_typeof(lists.value) when 'array' then lists.value else '[]' end
        ) as names (name)
        where not names.name = any (p_names)
    );
end;
