-- Creates the subscriptions of users whose first message is counted or held, and the subscribers that do not exist yet.
-- Raises unique_violation if another session has created one meanwhile; the caller then reads the users again.
--
-- p_users is ascending without duplicates. Each of the other arrays has one element per user. p_is_trial: whether the
-- plan is a trial, which begins at p_started_at. p_has_subscriber: whether the caller has locked the user's subscriber.
create or replace function headroom.create_first_subscriptions(
    p_bucket smallint, p_users uuid[], p_plans text[], p_started_at timestamptz[], p_is_trial boolean[],
    p_has_subscriber boolean[]
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    -- Whether a trial may end at a date of its own, which the subscriber then has.
    v_may_have_end constant boolean := true = any(p_has_subscriber)
        or exists (select from headroom.spent_trials as spent where spent.bucket = p_bucket);
begin
    insert into headroom.subscribers (bucket, user_id, trial_started_at)
    select p_bucket, first.user_id, case when first.is_trial then first.started_at end
    from unnest(p_users, p_started_at, p_is_trial, p_has_subscriber)
        as first (user_id, started_at, is_trial, has_subscriber)
    where not first.has_subscriber;
    -- These subscribers only have an anchor day, or their subscription was removed.
    if true = any(p_has_subscriber) then
        update headroom.subscribers as subscriber
        -- Citus 13.2.0 ends its server if a column of a domain is set to the element of an array; greatest() avoids
        -- that.
        set trial_started_at = greatest(p_started_at[width_bucket(subscriber.user_id, p_users)])
        where subscriber.bucket = p_bucket and subscriber.user_id = any(p_users)
            and subscriber.trial_started_at is null and p_is_trial[width_bucket(subscriber.user_id, p_users)];
    end if;
    insert into headroom.subscriptions (bucket, user_id, original_transaction_id, plan, started_at, expires_at)
    select p_bucket, first.user_id, 'first message', first.plan, first.started_at, subscriber.trial_ends_at
    from unnest(p_users, p_plans, p_started_at, p_is_trial) as first (user_id, plan, started_at, is_trial)
    -- This is a join, because a subquery here ended a worker of Citus. It is for trials only.
    left join headroom.subscribers as subscriber
        on subscriber.bucket = p_bucket
            and subscriber.user_id = case when v_may_have_end and first.is_trial then first.user_id end;
end
$$;
