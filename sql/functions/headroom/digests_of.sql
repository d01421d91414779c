-- Returns the digests of a user's store ids. A digest belongs to the UUID beside it in an event. If several events name the
-- digest beside a UUID, the newest event decides.
create or replace function headroom.digests_of(p_user_id uuid, p_customer_id bigint) returns text[]
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return array(
        select newest.name
        from (
            select distinct on (events.source, names.name) names.name, users.name as user_name
            from headroom.billing_events as events
            cross join lateral (
                select events.identities as identities
                union all
                select headroom.names_in(events.effects)
            ) as named (identities)
            cross join lateral (
                select identity from unnest(named.identities) with ordinality as members (identity, place)
                where identity not like 'sha256:%' order by place limit 1
            ) as users (name)
            cross join lateral unnest(named.identities) as names (name)
            where events.customer_id = p_customer_id and names.name like 'sha256:%'
            order by events.source, names.name, events.happened_at desc, events.id collate "C" desc
        ) as newest
        where newest.user_name = p_user_id::text
    );
end
$$;
