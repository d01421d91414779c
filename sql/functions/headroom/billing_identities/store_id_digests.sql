-- Returns the digests of a user's store ids. A digest belongs to the user whose UUID comes first in the same list of
-- identities. If lists disagree, that of the newest event decides.
create or replace function headroom.store_id_digests(p_user_id uuid, p_customer_id bigint) returns text[]
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return array(
        select newest.digest
        from (
            select distinct on (lists.source, digests.digest) digests.digest, owners.identity as owner
            from headroom.customer_identities(p_customer_id) as lists
            cross join lateral (
                select identity from unnest(lists.identities) with ordinality as members (identity, position)
                where identity not like 'sha256:%' order by position limit 1
            ) as owners (identity)
            cross join lateral unnest(lists.identities) as digests (digest)
            where digests.digest like 'sha256:%'
            order by lists.source, digests.digest, lists.happened_at desc, lists.event_id collate "C" desc
        ) as newest
        where newest.owner = p_user_id::text
    );
end
$$;
