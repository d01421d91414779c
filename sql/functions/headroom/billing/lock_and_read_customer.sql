-- Locks the customer of a billing event and the customer's users, and returns everything that decides what they may
-- send, as JSON: the customer's events, users with their subscriptions, purchases, transfers, plans, and the mappings
-- of the products in p_products and of the entitlements in p_entitlements. Creates missing customers and users, and
-- merges customers (headroom.lock_customer).
--
-- An event is not applied again if its user was forgotten, or if it was recorded before, did not fail, and p_is_replay
-- is false. The result then contains only "answer", and the event's row is locked: so the commit writes something, and
-- waits for a standby as the commit of the recorded event did.
--
-- p_source, p_event_id: the event. p_is_replay: an operator applies a recorded event again. p_names: names of the
-- customer in headroom.customer_names. p_users: users to create and lock.
create or replace function headroom.lock_and_read_customer(
    p_source text, p_event_id text, p_is_replay boolean, p_names text[], p_users uuid[], p_products text[],
    p_entitlements text[]
) returns json
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
declare
    v_outcome text;
    v_user_id uuid;
    v_problem text;
    v_received_at timestamptz;
    v_applied_at timestamptz;
    v_customer_id bigint;
    v_users uuid[];
    v_locked_id uuid;
    v_plans json;
    v_trials text[];
begin
    for v_attempt in 1 .. 2 loop
        select events.outcome, events.user_id, events.problem, events.received_at, events.applied_at
        into v_outcome, v_user_id, v_problem, v_received_at, v_applied_at
        from headroom.billing_events as events where events.source = p_source and events.id = p_event_id;
        -- An event is applied once, unless it failed or this is a replay. Events of a forgotten user are never applied
        -- again.
        if v_outcome = 'forgotten' or not p_is_replay and v_outcome <> 'failed' then
            perform from headroom.billing_events as events
            where events.source = p_source and events.id = p_event_id
            for update;
            return json_build_object(
                'answer', headroom.billing_answer('duplicate', v_user_id, v_problem, case
                    when v_user_id is not null then headroom.entitlement(v_user_id, headroom.now(), 'deny')
                end)
            );
        end if;
        -- The second attempt checks again under the lock, because the session that held it may have applied this event.
        exit when v_attempt = 2 or p_names = '{}';
        v_customer_id := headroom.lock_customer(p_names);
    end loop;
    v_users := array(
        select subscriber.user_id
        from headroom.customer_names as names
        join headroom.subscribers as subscriber
            on subscriber.bucket = headroom.bucket_of(substr(names.name, 6)::uuid)
                and subscriber.user_id = substr(names.name, 6)::uuid
        where names.customer_id = v_customer_id and names.name like 'user:%'
        union
        select unnest(p_users)
        order by user_id
    );
    -- Every transaction locks users in ascending order, which prevents deadlocks. An insert locks the new row, so each
    -- user is created and locked before the next one: creating all of them first would break the order.
    foreach v_locked_id in array v_users loop
        perform headroom.lock_subscriber(v_locked_id);
    end loop;
    select json_agg(all_plans), array_agg(all_plans.plan) filter (where all_plans.is_trial) into v_plans, v_trials
    from (
        select
            plans.plan, plans.cycle, plans.trial_days as days,
            headroom.comparable_allowance(plans.cycle, plans.allowance, plans.enforced) as allowance,
            plans.cycle = 'trial' and plans.enforced as is_trial
        from headroom.plans
    ) as all_plans;
    return json_build_object(
        'now', headroom.now(),
        'customer', v_customer_id,
        'before', v_outcome,
        'received_at', v_received_at,
        'applied_at', v_applied_at,
        -- json_agg of rows takes half as long as json_build_object for each row.
        'events', (
            select json_agg(customer_events) from (
                select
                    events.source, events.id, events.happened_at as at, events.received_at, events.applied_at,
                    events.environment, events.identities, events.effects, events.user_id as "user", events.outcome,
                    events.missing_prerequisite, events.unmapped_product, events.problem
                from headroom.billing_events as events
                where events.customer_id = v_customer_id and events.effects is not null
                    -- An event without effects only connects identities: the newest of those with the same ones is
                    -- enough.
                    and (
                        events.effects <> '[]' or events.user_id is null
                        or (events.source, events.id) in (
                            select distinct on (linking.source, linking.identities) linking.source, linking.id
                            from headroom.billing_events as linking
                            where linking.customer_id = v_customer_id and linking.effects = '[]'
                                and linking.user_id is not null and cardinality(linking.identities) > 1
                            order by
                                linking.source, linking.identities, linking.happened_at desc,
                                linking.id collate "C" desc
                        )
                    )
            ) as customer_events
        ),
        'users', (
            select json_agg(headroom.user_billing_state(users.user_id, v_trials))
            from unnest(v_users) as users (user_id)
        ),
        'purchases', (
            select json_agg(user_purchases) from (
                select purchases.source, purchases.transaction, purchases.user_id as "user", purchases.is_refunded
                from headroom.message_purchases as purchases where purchases.user_id = any(v_users)
            ) as user_purchases
        ),
        'transfers', (
            select json_agg(user_transfers) from (
                select transfers.source, transfers.event_id as event, transfers.giver, transfers.receiver
                from headroom.usage_transfers as transfers where transfers.receiver = any(v_users)
            ) as user_transfers
        ),
        'plans', v_plans,
        'renewal_leeway_s', extract(epoch from headroom.renewal_leeway())::integer,
        'products', (
            select json_agg(products) from headroom.store_products as products
            where products.source = p_source and products.product = any(p_products)
        ),
        'entitlements', (
            select json_agg(entitlements) from headroom.store_entitlements as entitlements
            where entitlements.source = p_source and entitlements.entitlement = any(p_entitlements)
        )
    );
end
$$;
