-- Returns whether an event with the identities p_identities belongs to another user. As in CustomerReducer, the first
-- UUID decides, otherwise a digest. p_other_identities: the UUIDs of the other users, and the digests of their store
-- ids.
create or replace function headroom.belongs_to_other_user(
    p_identities text[], p_user_id uuid, p_other_identities text[]
) returns boolean
    language sql immutable parallel safe
begin atomic
    select p_identities && p_other_identities and coalesce((
        select members.identity <> p_user_id::text
        from unnest(p_identities) with ordinality as members (identity, position)
        where members.identity not like 'sha256:%'
        order by members.position limit 1
    ), true);
end;
