-- Deletes all data of a user and returns the number of rows. Only what never comes back stays, under a keyed hash: a
-- trial that was started, and the messages counted in a plan that never resets. Locks the customer, then the
-- subscribers and usage rows of the user and of the accounts whose member it is (headroom.forget_parts).
create or replace function public.forget_user(p_user_id uuid) returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_subscriber headroom.subscribers;
    v_table text;
    v_parts bigint;
    v_rows bigint;
    v_count bigint;
    v_periods text[];
    v_messages integer[];
    v_customer_id bigint;
begin
    if p_user_id is null then
        raise exception 'p_user_id is null: pass the user''s uuid' using errcode = 'null_value_not_allowed';
    end if;
    -- The customer is locked before the subscriber, as for billing events.
    v_customer_id := headroom.lock_customer(array['user:' || p_user_id]);
    v_parts := headroom.forget_parts(p_user_id);
    -- This creates a subscriber to lock if there is none, so that a first message comes before or after this. Creating
    -- it restores what was spent, which is spent again below. None of these rows count as deleted.
    select -1 - count(*) into v_rows from headroom.spent_trials as spent
    where spent.bucket = headroom.bucket_of(p_user_id) and spent.digest = headroom.spent_trial_digest(p_user_id);
    if not headroom.lock_subscriber(p_user_id) then
        v_rows := 0;
    end if;
    select * into strict v_subscriber from headroom.subscribers
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id;

    with deleted_usage as (
        delete from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
        returning usage.billing_period, usage.message_count
    )
    select count(*), array_agg(deleted_usage.billing_period), array_agg(deleted_usage.message_count)
    into v_count, v_periods, v_messages
    from deleted_usage;
    v_rows := v_rows + v_parts + v_count;
    insert into headroom.spent_trials (bucket, digest, plan, trial_started_at, trial_ends_at, messages)
    select
        headroom.bucket_of(p_user_id), headroom.spent_trial_digest(p_user_id), trials.plan, trials.trial_started_at,
        trials.trial_ends_at, trials.messages
    from (
        select
            plans.plan,
            case when plans.cycle = 'trial' then coalesce(
                least(min(subscription.revoked_at), min(subscription.expires_at)), v_subscriber.trial_ends_at
            ) end as trial_ends_at,
            case when plans.cycle = 'trial' then coalesce(
                least(v_subscriber.trial_started_at, v_subscriber.store_trial_started_at), min(subscription.started_at)
            ) end as trial_started_at,
            coalesce(max(deleted_usage.message_count), 0) as messages
        from headroom.plans as plans
        left join unnest(v_periods, v_messages) as deleted_usage (billing_period, message_count)
            on deleted_usage.billing_period = plans.plan
        left join headroom.subscriptions as subscription
            on subscription.bucket = headroom.bucket_of(p_user_id) and subscription.user_id = p_user_id
                and subscription.plan = plans.plan
        -- A period with the name of a plan was one that never reset, even if an edit has given the plan another cycle.
        where deleted_usage.billing_period is not null
            or plans.cycle = 'trial' and (subscription.plan is not null or plans.plan = 'trial')
        group by plans.plan
    ) as trials
    where trials.trial_started_at is not null or trials.messages > 0
    -- headroom.divide_users may have made a copy before the user returned.
    on conflict (bucket, digest, plan) do update
    set trial_started_at = excluded.trial_started_at, trial_ends_at = excluded.trial_ends_at,
        messages = excluded.messages;
    foreach v_table in array array['message_keys', 'grants', 'audit_log', 'subscriptions', 'subscribers'] loop
        execute format('delete from headroom.%I where bucket = headroom.bucket_of($1) and user_id = $1', v_table)
        using p_user_id;
        get diagnostics v_count = row_count;
        v_rows := v_rows + v_count;
    end loop;
    delete from headroom.notifications as notifications
    where notifications.user_id = p_user_id
        or notifications.allowance = 'member' and notifications.part = p_user_id::text;
    get diagnostics v_count = row_count;
    v_rows := v_rows + v_count + headroom.forget_billing(p_user_id, v_customer_id);
    perform headroom.record_change(null, null, 'forget', null, jsonb_build_object('rows', v_rows));
    return v_rows;
end
$$;
alter function public.forget_user(uuid) owner to headroom_owner;
