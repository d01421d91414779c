-- Trigger function: restores the spent trial of a forgotten user when the user gets a row in headroom.subscribers
-- again. The start of the trial goes into that row, its messages into a usage row.
create or replace function headroom.restore_spent_trial() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_spent headroom.spent_trials;
begin
    for v_spent in
        delete from headroom.spent_trials as spent
        where spent.bucket = new.bucket and spent.digest = (
            select headroom.keyed_digest(new.user_id, secrets.inner_key, secrets.outer_key)
            from headroom.secrets where secrets.name = 'spent trials'
        )
        returning spent.*
    loop
        update headroom.subscribers as subscriber
        set trial_started_at = least(subscriber.trial_started_at, v_spent.trial_started_at),
            trial_ends_at = least(subscriber.trial_ends_at, v_spent.trial_ends_at)
        where subscriber.bucket = new.bucket and subscriber.user_id = new.user_id;
        insert into public.message_usage as usage (
            bucket, user_id, billing_period, message_count, "limit", updated_at, plan, plan_limit, state, started_at,
            expires_at
        )
        select
            new.bucket, new.user_id, v_spent.plan, v_spent.messages, plans.allowance, headroom.now(), v_spent.plan,
            plans.allowance, 'trial', v_spent.trial_started_at,
            coalesce(v_spent.trial_ends_at, v_spent.trial_started_at + make_interval(hours => 24 * plans.trial_days))
        from (select) as one_row
        left join headroom.plans as plans on plans.plan = v_spent.plan
        on conflict (user_id, billing_period) do update
        set message_count = least(usage.message_count::bigint + excluded.message_count, 2147483647);
    end loop;
    return null;
end
$$;
