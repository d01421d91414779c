-- Returns whether an event with these identities belongs to one of p_others and not to the user. As in CustomerReducer,
-- the first UUID decides, else a digest. p_others: UUIDs of other users, and the digests that belong to them.
create or replace function headroom.belongs_to_other_user(p_identities text[], p_user_id uuid, p_others text[])
    returns boolean
    language sql immutable parallel safe
begin atomic
    select p_identities && p_others and coalesce((
        select members.identity <> p_user_id::text
        from unnest(p_identities) with ordinality as members (identity, position)
        where members.identity not like 'sha256:%'
        order by members.position limit 1
    ), true);
end;
