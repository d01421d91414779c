-- Deletes what is known of a user from stores; returns how many rows that concerned. Where a subscription went on to
-- somebody else, an invented name stands in the place of who had it, which nothing leads back from: without it, it would
-- go to somebody before.
create or replace function headroom.forget_store_facts(p_user_id uuid) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_user constant text := p_user_id::text;
    v_stub constant text := headroom.digest_of_nobody();
    v_names text[];
    v_rows bigint := 0;
    v_count bigint;
begin
    select array_append(coalesce(array_agg(known.identity), '{}'), v_user) into v_names
    from headroom.store_identities as known where known.user_id = p_user_id;
    v_rows := headroom.forget_store_notifications(p_user_id, v_names, v_stub);

    with owned as (
        select owner.source, owner.transaction
        from headroom.store_owners as owner
        where owner.person = any (v_names) and not exists (
            select from headroom.store_owners as later
            where later.source = owner.source and later.transaction = owner.transaction and later.step > owner.step
        )
    ),
    claims as (
        delete from headroom.store_claims as claims using owned
        where claims.source = owned.source and claims.transaction = owned.transaction
        returning 1
    ),
    owners as (
        delete from headroom.store_owners as owners using owned
        where owners.source = owned.source and owners.transaction = owned.transaction
        returning 1
    )
    select (select count(*) from claims) + (select count(*) from owners) into v_count;
    v_rows := v_rows + v_count;
    update headroom.store_owners as owners set person = v_stub where owners.person = any (v_names);
    update headroom.store_claims as claims
    set identities = case headroom.store_person(claims.source, claims.identities)
        when v_user then array[v_stub]
        else array(
            select names.identity from unnest(claims.identities) with ordinality as names (identity, place)
            where not names.identity = any (v_names) order by names.place
        )
    end
    where claims.identities && v_names;
    update headroom.store_transfers as transfers
    set from_identities = array(
            select distinct case when names.identity = any (v_names) then v_stub else names.identity end
            from unnest(transfers.from_identities) as names (identity)
        ),
        to_identities = case headroom.store_person(transfers.source, transfers.to_identities)
            when v_user then array[v_stub]
            else array(
                select names.identity from unnest(transfers.to_identities) with ordinality as names (identity, place)
                where not names.identity = any (v_names) order by names.place
            )
        end
    where transfers.from_identities && v_names or transfers.to_identities && v_names;
    delete from headroom.store_transfers as transfers
    where transfers.from_identities = array[v_stub] and transfers.to_identities in (array[v_stub], '{}');
    delete from headroom.store_identities as known where known.user_id = p_user_id;
    get diagnostics v_count = row_count;
    v_rows := v_rows + v_count;
    delete from headroom.store_purchases as purchases where purchases.user_id = p_user_id;
    get diagnostics v_count = row_count;
    v_rows := v_rows + v_count;
    delete from headroom.store_carried_usage as carried where carried.user_id = p_user_id;
    get diagnostics v_count = row_count;
    return v_rows + v_count;
end
$$;
revoke all on function headroom.forget_store_facts(uuid) from public;
grant execute on function headroom.forget_store_facts(uuid) to headroom_service;
