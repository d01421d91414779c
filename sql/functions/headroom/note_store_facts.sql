-- Keeps what a notification says of persons, in place of what it said before, where it is read anew. Gives the
-- transactions whose owner may be another now, and the identities that are news. What comes too early says nothing.
create or replace function headroom.note_store_facts(
    p_notification headroom.store_notifications, out p_transactions text[], out p_news text[]
)
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_source constant text := p_notification.source;
    v_id constant text := p_notification.id;
    v_at constant timestamptz := p_notification.happened_at;
    v_effect jsonb;
    v_place integer := 0;
    v_from text[];
    v_to text[];
    v_names text[] := '{}';
    v_before text[];
    v_is_too_early constant boolean := headroom.is_too_early(p_notification);
begin
    p_news := case
        when v_is_too_early then '{}'
        else headroom.learn_store_identities(v_source, p_notification.identities, v_at, v_id)
    end;
    with gone as (
        delete from headroom.store_claims as claims where claims.source = v_source and claims.id = v_id
        returning claims.transaction
    )
    select coalesce(array_agg(gone.transaction), '{}') into p_transactions from gone;
    select p_transactions || coalesce(array_agg(owners.transaction), '{}') into v_before
    from headroom.store_owners as owners
    where owners.source = v_source and owners.told_by = v_id and not owners.is_alias and exists (
        select from headroom.store_transfers as transfers
        where transfers.source = v_source and transfers.id = v_id
    );
    delete from headroom.store_transfers as transfers where transfers.source = v_source and transfers.id = v_id;

    for v_effect in
        select * from jsonb_array_elements(case when v_is_too_early then '[]' else p_notification.effects end)
    loop
        v_place := v_place + 1;
        if v_effect ->> 'kind' in ('transferred', 'merged') then
            v_from := headroom.read_store_identities('from', coalesce(v_effect -> 'from', v_effect -> 'identities'));
            v_to := headroom.read_store_identities('to', coalesce(v_effect -> 'to', v_effect -> 'identities'));
            p_news := p_news || headroom.learn_store_identities(v_source, v_to, v_at, v_id);
            if v_effect ->> 'kind' = 'transferred' then
                p_news := p_news || headroom.learn_store_identities(v_source, v_from, v_at, v_id);
            end if;
            insert into headroom.store_transfers (source, id, place, at, from_identities, to_identities)
            values (v_source, v_id, v_place, v_at, v_from, v_to);
            v_names := v_names || v_from;
        elsif v_effect ->> 'kind' <> 'granted' then
            insert into headroom.store_claims (source, transaction, id, at, identities)
            values (v_source, v_effect ->> 'transaction', v_id, v_at, p_notification.identities)
            on conflict (source, transaction, id) do nothing;
            p_transactions := p_transactions || (v_effect ->> 'transaction');
        end if;
    end loop;
    p_transactions := p_transactions || v_before;

    if cardinality(p_news) > 0 then
        select p_transactions || coalesce(array_agg(claims.transaction), '{}') into p_transactions
        from headroom.store_claims as claims
        where claims.source = v_source and claims.identities && p_news;
        -- A transfer that names one of them may find its subscriptions only now.
        select v_names || p_news || coalesce(array_agg(names.identity), '{}') into v_names
        from headroom.store_transfers as transfers
        cross join lateral unnest(transfers.from_identities) as names (identity)
        where transfers.source = v_source
            and (transfers.from_identities && p_news or transfers.to_identities && p_news);
    end if;
    if cardinality(v_names) > 0 then
        select p_transactions || coalesce(array_agg(owners.transaction), '{}') into p_transactions
        from headroom.store_owners as owners
        where owners.source = v_source and not owners.is_alias and owners.person = any (
            v_names || array(
                select known.user_id::text from headroom.store_identities as known
                where known.source = v_source and known.identity = any (v_names)
            )
        );
    end if;
    select coalesce(array_agg(distinct transaction order by transaction), '{}') into p_transactions
    from unnest(p_transactions) as transactions (transaction);
end
$$;
revoke all on function headroom.note_store_facts(headroom.store_notifications) from public;
grant execute on function headroom.note_store_facts(headroom.store_notifications) to headroom_service;
