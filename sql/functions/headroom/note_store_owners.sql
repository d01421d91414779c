-- Writes down whose a transaction was and is. Returns every user who is concerned: those who were owners, those who are,
-- and those who have an event of it. Steps that were there keep the usage that was noted with them.
--
-- p_claim: the notification, where its claim is the only fact that is new since the last time, else null.
create or replace function headroom.note_store_owners(
    p_source text, p_transaction text, p_claim headroom.store_notifications
) returns uuid[]
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_before headroom.store_owners[];
    v_after headroom.store_owners[];
    v_last headroom.store_owners;
    v_person text;
    v_users uuid[];
begin
    select coalesce(array_agg(owners order by owners.step), '{}') into v_before
    from headroom.store_owners as owners
    where owners.source = p_source and owners.transaction = p_transaction;
    v_last := v_before[cardinality(v_before)];
    v_person := headroom.store_person(p_source, p_claim.identities);
    -- The usual renewal: it names nobody, or who is the owner already, after becoming it. That changes nothing.
    if v_last.person is not null and p_claim.id is not null and (
        v_person is null
        or v_person = v_last.person
            and (p_claim.happened_at, p_claim.id collate "C") > (v_last.since, v_last.told_by)
    ) then
        v_after := v_before;
    else
        select coalesce(array_agg(owners order by owners.step), '{}') into v_after
        from headroom.find_store_owners(p_source, p_transaction) as owners;
    end if;
    if v_before is distinct from v_after
        and (select array_agg(row(step, person, since, told_by) order by step) from unnest(v_before))
        is distinct from (select array_agg(row(step, person, since, told_by) order by step) from unnest(v_after))
    then
        delete from headroom.store_owners as owners
        where owners.source = p_source and owners.transaction = p_transaction;
        insert into headroom.store_owners (source, transaction, step, person, since, told_by, made_at, usage)
        select
            after.source, after.transaction, after.step, after.person, after.since, after.told_by, kept.made_at,
            kept.usage
        from unnest(v_after) as after
        left join unnest(v_after) as giver on giver.step = after.step - 1
        left join lateral (
            select before.made_at, before.usage
            from unnest(v_before) as before
            join unnest(v_before) as giver_before on giver_before.step = before.step - 1
            where before.told_by = after.told_by and before.person = after.person
                and giver_before.person = giver.person
            order by before.step limit 1
        ) as kept on true;
    end if;
    select array_agg(distinct users.user_id) into v_users
    from (
        select headroom.user_of_person(person) from unnest(v_before || v_after)
        union
        select events.user_id from headroom.store_events as events
        where events.source = p_source and events.original_transaction_id = p_transaction
    ) as users (user_id)
    where users.user_id is not null;
    return coalesce(v_users, '{}');
end
$$;
revoke all on function headroom.note_store_owners(text, text, headroom.store_notifications) from public;
grant execute on function headroom.note_store_owners(text, text, headroom.store_notifications) to headroom_service;
