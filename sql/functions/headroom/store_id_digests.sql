-- Returns the digests of a user's store ids. A digest belongs to the first UUID of the same event. If the events
-- disagree, the newest one decides.
create or replace function headroom.store_id_digests(p_user_id uuid, p_customer_id bigint) returns text[]
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return array(
        select newest.name
        from (
            select distinct on (named.source, names.name) names.name, users.name as user_name
            from headroom.customer_identities(p_customer_id) as named
            cross join lateral (
                select identity from unnest(named.identities) with ordinality as members (identity, position)
                where identity not like 'sha256:%' order by position limit 1
            ) as users (name)
            cross join lateral unnest(named.identities) as names (name)
            where names.name like 'sha256:%'
            order by named.source, names.name, named.happened_at desc, named.event_id collate "C" desc
        ) as newest
        where newest.user_name = p_user_id::text
    );
end
$$;
