-- Returns the lists of identities in a billing event's effects: both sides of a transfer, and the identities of an
-- alias.
create or replace function headroom.effect_identities(p_effects jsonb) returns setof text[]
    language sql immutable parallel safe
begin atomic
    select array(select jsonb_array_elements_text(lists.list))
    from jsonb_array_elements(p_effects) as effects (value)
    cross join lateral (
        values (effects.value -> 'from'), (effects.value -> 'to'), (effects.value -> 'identities')
    ) as lists (list)
    where jsonb_typeof(lists.list) = 'array';
end;
