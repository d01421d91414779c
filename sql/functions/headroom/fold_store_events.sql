-- Computes a user's subscriptions anew from all store events that are in force. Returns whether anything changed.
--
-- It starts from the anchor day that the first event found. subscribers.anchor_day is where the last computation ended: it
-- would make the result depend on the order in which events came.
create or replace function headroom.fold_store_events(p_user_id uuid) returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_subscriber headroom.subscribers;
    v_event headroom.store_events;
    v_rows headroom.subscriptions[] := '{}';
    v_transactions text[] := '{}';
    v_place integer;
    v_before headroom.subscriptions;
    v_row headroom.subscriptions;
    v_plan text;
    v_cycle text;
    v_anchor_day smallint;
    v_previous_plan text;
    v_trial_started_at timestamptz;
    v_changes bigint;
    v_changed_subscribers bigint;
begin
    select * into strict v_subscriber from headroom.subscribers as subscriber where subscriber.user_id = p_user_id;
    v_anchor_day := v_subscriber.anchor_day;
    v_trial_started_at := v_subscriber.trial_started_at;
    v_previous_plan := v_subscriber.declared_previous_plan;
    select subscription.plan into v_plan
    from headroom.subscriptions as subscription
    join headroom.plans as plans on plans.plan = subscription.plan and plans.cycle = 'monthly'
    where subscription.user_id = p_user_id and subscription.original_transaction_id = 'operator';

    for v_event in
        select * from headroom.store_events as events
        where events.user_id = p_user_id and headroom.is_store_event_kind(events.kind)
            and headroom.is_in_force(events, v_subscriber.declared_at)
        order by events.event_at, events.source collate "C", events.event_id collate "C"
    loop
        if cardinality(v_transactions) = 0 then
            v_anchor_day := coalesce(v_subscriber.declared_anchor_day, v_subscriber.anchor_day);
        end if;
        v_place := array_position(v_transactions, v_event.original_transaction_id);
        if v_place is null then
            v_transactions := v_transactions || v_event.original_transaction_id;
            v_place := cardinality(v_transactions);
            v_before := null;
            v_before.user_id := p_user_id;
            v_before.original_transaction_id := v_event.original_transaction_id;
        else
            v_before := v_rows[v_place];
        end if;
        v_row := headroom.fold_event(v_before, v_event);
        v_rows[v_place] := v_row;

        if v_row.anchor_day is not null and (
            v_row.anchor_day is distinct from v_before.anchor_day or v_event.anchor_day is not null
            or v_event.kind = 'purchased'
        ) then
            v_anchor_day := v_row.anchor_day;
        end if;
        if v_row.plan is not null and (v_row.plan is distinct from v_before.plan or v_event.kind = 'purchased') then
            select plans.cycle into v_cycle from headroom.plans as plans where plans.plan = v_row.plan;
            if v_cycle = 'monthly' then
                if v_plan <> v_row.plan then
                    v_previous_plan := v_plan;
                end if;
                v_plan := v_row.plan;
            elsif v_cycle = 'trial' then
                v_trial_started_at := least(v_trial_started_at, v_row.started_at);
            end if;
        end if;
    end loop;

    insert into headroom.subscriptions as subscription
    select
        folded.user_id, folded.original_transaction_id, folded.plan,
        -- A trial is had once. Another goes on in the first: it ends with it, and shows its days.
        case when is_repeated then v_trial_started_at else folded.started_at end,
        case when is_repeated then v_subscriber.trial_ends_at else folded.expires_at end,
        folded.grace_until, folded.billing_issue_at, folded.unsubscribed_at, folded.revoked_at, folded.product,
        folded.next_plan, folded.next_product, folded.environment, folded.event_at, folded.anchor_day
    from unnest(v_rows) as folded
    join headroom.plans as plans on plans.plan = folded.plan
    cross join lateral (
        select plans.cycle = 'trial' and coalesce(folded.started_at > v_trial_started_at, false)
    ) as trial (is_repeated)
    on conflict (user_id, original_transaction_id) do update
    set plan = excluded.plan, started_at = excluded.started_at, expires_at = excluded.expires_at,
        grace_until = excluded.grace_until, billing_issue_at = excluded.billing_issue_at,
        unsubscribed_at = excluded.unsubscribed_at, revoked_at = excluded.revoked_at, product = excluded.product,
        next_plan = excluded.next_plan, next_product = excluded.next_product, environment = excluded.environment,
        event_at = excluded.event_at, anchor_day = excluded.anchor_day
    where subscription.* is distinct from excluded.*;
    get diagnostics v_changes = row_count;

    update headroom.subscribers as subscriber
    set anchor_day = v_anchor_day, previous_plan = v_previous_plan, trial_started_at = v_trial_started_at
    where subscriber.user_id = p_user_id
        and (subscriber.anchor_day, subscriber.previous_plan, subscriber.trial_started_at)
            is distinct from (v_anchor_day, v_previous_plan, v_trial_started_at);
    get diagnostics v_changed_subscribers = row_count;
    return v_changes + v_changed_subscribers > 0;
end
$$;
revoke all on function headroom.fold_store_events(uuid) from public;
grant execute on function headroom.fold_store_events(uuid) to headroom_service;
