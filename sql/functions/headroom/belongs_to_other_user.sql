-- Whether an event with these identities is of one of p_others, and not of the user: as CustomerReducer reads them, the first
-- UUID decides, else a digest does. p_others: UUIDs, and the digests that are known to be theirs.
create or replace function headroom.belongs_to_other_user(p_identities text[], p_user_id uuid, p_others text[]) returns boolean
    language sql immutable parallel safe
begin atomic
    select p_identities && p_others and coalesce((
        select members.identity <> p_user_id::text
        from unnest(p_identities) with ordinality as members (identity, place)
        where members.identity not like 'sha256:%'
        order by members.place limit 1
    ), true);
end;
