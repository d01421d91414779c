-- Brings a transaction's events to its owner, where they are somebody else's, and notes what each owner had counted who
-- gave it away. The caller holds the rows of all whom headroom.note_store_owners returned.
create or replace function headroom.settle_store_owner(
    p_source text, p_transaction text, p_told text, p_id text
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_owner headroom.store_owners;
    v_owner_id uuid;
    v_was_given boolean;
    v_is_waiting boolean;
    v_transferred_at timestamptz;
    v_trial_started_at timestamptz;
    v_user_id uuid;
    v_users uuid[];
    v_was_folded boolean[] := '{}';
    v_before jsonb[] := '{}';
begin
    select * into v_owner from headroom.store_owners as owners
    where owners.source = p_source and owners.transaction = p_transaction
    order by owners.step desc limit 1;
    if not found then
        return;
    end if;
    -- Most transactions stay with who bought them, and a renewal of theirs is not to cost what a transfer does.
    v_was_given := v_owner.step > 0;
    if v_was_given then
        update headroom.store_owners as owners
        set made_at = headroom.now(), usage = headroom.own_usage(headroom.user_of_person(giver.person))
        from headroom.store_owners as giver
        where owners.source = p_source and owners.transaction = p_transaction and owners.step > 0
            and owners.made_at is null
            and giver.source = owners.source and giver.transaction = owners.transaction
            and giver.step = owners.step - 1;
        v_transferred_at := v_owner.since;
    end if;
    v_owner_id := headroom.user_of_person(v_owner.person);
    select
        array_agg(distinct users.user_id) filter (
            where (events.user_id, events.transferred_at) is distinct from (v_owner_id, v_transferred_at)
                and users.user_id is not null
        ),
        bool_or(events.outcome = 'waiting')
    into v_users, v_is_waiting
    from headroom.store_events as events
    cross join lateral (select unnest(array[events.user_id, v_owner_id])) as users (user_id)
    where events.source = p_source and events.original_transaction_id = p_transaction;
    if v_users is not null then
        for i in 1 .. cardinality(v_users) loop
            v_was_folded[i] := headroom.note_declared(v_users[i]);
            v_before[i] := headroom.standing_record(v_users[i], p_transaction);
        end loop;
        update headroom.store_events as events
        set user_id = v_owner_id, transferred_at = v_transferred_at,
            outcome = case events.outcome when 'outdated' then 'applied' else events.outcome end
        where events.source = p_source and events.original_transaction_id = p_transaction;
        for i in 1 .. cardinality(v_users) loop
            perform headroom.refold_subscriber(
                v_users[i], p_transaction, v_was_folded[i], v_before[i], p_told, p_id
            );
        end loop;
    end if;

    if v_was_given then
        -- Who had its trial has had a trial, also after giving it away.
        select min(coalesce(events.started_at, events.event_at)) into v_trial_started_at
        from headroom.store_events as events
        join headroom.plans as plans on plans.plan = events.plan and plans.cycle = 'trial'
        where events.source = p_source and events.original_transaction_id = p_transaction
            and events.kind in ('purchased', 'renewed');
        for v_user_id in
            update headroom.subscribers as subscriber set trial_started_at = v_trial_started_at
            from headroom.store_owners as owners
            where owners.source = p_source and owners.transaction = p_transaction
                and subscriber.user_id = headroom.user_of_person(owners.person)
                and coalesce(subscriber.trial_started_at > v_trial_started_at, v_trial_started_at is not null)
            returning subscriber.user_id
        loop
            -- A later trial of theirs goes on in this one.
            perform headroom.fold_store_events(v_user_id);
            update public.message_usage as usage set usable_until = '-infinity'
            where usage.user_id = v_user_id and usage.usable_until > '-infinity';
        end loop;
        -- What waited for something to take has its effect now.
        update headroom.store_notifications as notifications set outcome = 'applied'
        from headroom.store_owners as owners
        join headroom.store_transfers as transfers on transfers.source = owners.source and transfers.id = owners.told_by
        where owners.source = p_source and owners.transaction = p_transaction and owners.step > 0
            and notifications.source = owners.source and notifications.id = owners.told_by
            and notifications.outcome = 'waiting';
    end if;
    -- And what waited for a plan.
    if v_is_waiting then
        with served as (
            update headroom.store_events as events set outcome = 'applied'
            from headroom.subscriptions as subscription
            where events.source = p_source and events.original_transaction_id = p_transaction
                and events.outcome = 'waiting'
                and subscription.user_id = events.user_id and subscription.original_transaction_id = p_transaction
            returning events.event_id
        )
        update headroom.store_notifications as notifications set outcome = 'applied'
        from served
        where notifications.source = p_source and notifications.id = served.event_id
            and notifications.outcome = 'waiting';
    end if;
end
$$;
revoke all on function headroom.settle_store_owner(text, text, text, text) from public;
grant execute on function headroom.settle_store_owner(text, text, text, text) to headroom_service;
