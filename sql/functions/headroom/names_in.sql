-- The lists of names in these effects: whom a transfer leads from and to, and whom an alias names.
create or replace function headroom.names_in(p_effects jsonb) returns setof text[]
    language sql immutable parallel safe
begin atomic
    select array(select jsonb_array_elements_text(lists.list))
    from jsonb_array_elements(p_effects) as effects (value)
    cross join lateral (
        values (effects.value -> 'from'), (effects.value -> 'to'), (effects.value -> 'identities')
    ) as lists (list)
    where jsonb_typeof(lists.list) = 'array';
end;
