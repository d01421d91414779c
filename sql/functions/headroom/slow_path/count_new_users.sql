-- Creates the subscribers, subscriptions and usage rows of new users whose messages fit, and counts these. Returns the
-- usage rows in ascending order. None of p_users, which are ascending without duplicates, has a subscriber. p_messages:
-- the messages of each. p_periods: only in these periods. Leaves out a user who has a usage row, because the subscriber
-- must be locked before it, and one who has spent something before being forgotten. Raises unique_violation or
-- serialization_failure if another session has created a row meanwhile, and HR006 or HR011 if a usage row is not kept
-- (headroom.raise_uncounted_row).
--
-- New users differ in nothing else, so the entitlement is derived once, and no first subscription ends at a date of its
-- own, as in headroom.create_first_subscriptions.
create or replace function headroom.count_new_users(
    p_bucket smallint, p_users uuid[], p_messages bigint[], p_periods text[], p_at timestamptz,
    p_unknown_users_policy text
) returns table (user_id uuid, billing_period text, message_count integer)
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_others uuid[];
    v_users uuid[];
    v_messages bigint[];
    v_one headroom.entitlement;
    v_inserted integer;
begin
    v_others := array(
        select usage.user_id from public.message_usage as usage
        where usage.bucket = p_bucket and usage.user_id = any(p_users)
    );
    if exists (select from headroom.spent_trials as spent where spent.bucket = p_bucket) then
        v_others := v_others || array(
            select request.user_id from unnest(p_users) as request (user_id)
            where exists (
                select from headroom.spent_trials as spent
                where spent.bucket = p_bucket and spent.digest = headroom.spent_trial_digest(request.user_id)
            )
        );
    end if;
    v_users := array(select request.user_id from unnest(p_users) as request (user_id) where user_id <> all(v_others));
    if v_users = '{}' then
        return;
    end if;
    v_one := headroom.entitlement(v_users[1], p_at, p_unknown_users_policy);
    if v_one.denial_reason is not null or v_one.window_messages is not null
        or v_one.billing_period <> all(p_periods) then
        return;
    end if;
    select array_agg(request.user_id), array_agg(request.messages) into v_users, v_messages
    from unnest(p_users, p_messages) as request (user_id, messages)
    where request.user_id <> all(v_others)
        and request.messages <= coalesce(case when v_one.enforced then v_one.allowance end, 2147483647);
    insert into headroom.subscribers (bucket, user_id, trial_started_at)
    select p_bucket, new.user_id, case when v_one.cycle = 'trial' then v_one.started_at end
    from unnest(v_users) as new (user_id);
    insert into headroom.subscriptions (bucket, user_id, original_transaction_id, plan, started_at)
    select p_bucket, new.user_id, 'first message', v_one.plan, v_one.started_at
    from unnest(v_users) as new (user_id);
    return query
    insert into public.message_usage as usage (
        bucket, user_id, billing_period, message_count, updated_at, "limit", plan_limit, plan, state, started_at,
        resets_at, expires_at, previous_plan, renews, usable_until, plan_revision, enforced
    )
    select
        p_bucket, new.user_id, v_one.billing_period, new.messages, p_at, v_one.allowance, v_one.allowance, v_one.plan,
        v_one.state, v_one.started_at, v_one.resets_at, v_one.expires_at, v_one.previous_plan, v_one.renews,
        v_one.usable_until, v_one.plan_revision, nullif(v_one.enforced, true)
    from unnest(v_users, v_messages) as new (user_id, messages)
    on conflict (user_id, billing_period) do nothing
    returning usage.user_id, usage.billing_period, usage.message_count;
    get diagnostics v_inserted = row_count;
    if v_inserted < cardinality(v_users) then
        perform headroom.raise_uncounted_row(p_bucket, new.user_id) from unnest(v_users) as new (user_id)
        where (
            select true from public.message_usage as usage
            where usage.bucket = p_bucket and usage.user_id = new.user_id and usage.updated_at = p_at
            limit 1
        ) is null;
    end if;
end
$$;
