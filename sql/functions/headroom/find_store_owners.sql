-- Whose a transaction was and is, computed from all that was told: a claim says whose it is at its instant, a transfer
-- takes it from who has it then. Nothing here asks when something arrived.
create or replace function headroom.find_store_owners(p_source text, p_transaction text) returns setof headroom.store_owners
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_owner headroom.store_owners;
    v_next record;
    v_at timestamptz := '-infinity';
    v_id text := '';
    v_place integer := -1;
    v_names text[] := '{}';
begin
    v_owner.source := p_source;
    v_owner.transaction := p_transaction;
    v_owner.step := -1;
    v_owner.is_alias := false;
    loop
        -- Most events of a transaction name the same identities: each list is looked up once.
        with persons as materialized (
            select lists.identities, headroom.store_person(p_source, lists.identities) as person
            from (
                select distinct claims.identities from headroom.store_claims as claims
                where claims.source = p_source and claims.transaction = p_transaction
            ) as lists
        )
        select moves.* into v_next
        from (
            select claims.at, claims.id, 0 as place, persons.person
            from headroom.store_claims as claims
            join persons on persons.identities = claims.identities
            where claims.source = p_source and claims.transaction = p_transaction
                and (claims.at, claims.id collate "C", 0) > (v_at, v_id, v_place)
            union all
            select
                transfers.at, transfers.id, transfers.place,
                headroom.store_person(p_source, transfers.to_identities)
            from headroom.store_transfers as transfers
            where transfers.source = p_source and transfers.from_identities && v_names
                and (transfers.at, transfers.id collate "C", transfers.place) > (v_at, v_id, v_place)
        ) as moves
        where moves.person <> coalesce(v_owner.person, '')
        order by moves.at, moves.id collate "C", moves.place
        limit 1;
        exit when not found;
        v_at := v_next.at;
        v_id := v_next.id;
        v_place := v_next.place;
        v_owner.step := v_owner.step + 1;
        v_owner.person := v_next.person;
        v_owner.since := v_at;
        v_owner.told_by := v_id;
        return next v_owner;
        select array_append(coalesce(array_agg(known.identity), '{}'), v_owner.person) into v_names
        from headroom.store_identities as known
        where known.source = p_source and known.user_id = headroom.user_of_person(v_owner.person);
    end loop;
end
$$;
revoke all on function headroom.find_store_owners(text, text) from public;
grant execute on function headroom.find_store_owners(text, text) to headroom_service;
