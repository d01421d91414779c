-- Trigger function: restores what forgotten users had spent when these get a row in headroom.subscribers again. The
-- start of a trial goes into that row, the messages of each plan that never resets into a usage row. It looks up all
-- inserted users at once; nearly always none of them has spent anything. Locks the usage rows in the order of the
-- users.
create or replace function headroom.restore_spent_trial() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_bucket smallint;
    v_users uuid[];
    v_user_id uuid;
    v_digest bytea;
    v_spent headroom.spent_trials;
    v_plan headroom.plans;
begin
    -- The transition table is read alone, because Citus cannot plan a query that has other tables beside it.
    for v_bucket, v_users in
        select inserted.bucket, array_agg(inserted.user_id order by inserted.user_id) from inserted
        group by inserted.bucket order by inserted.bucket
    loop
        continue when not exists (select from headroom.spent_trials as spent where spent.bucket = v_bucket);
        for v_user_id, v_digest in
            select inserted.user_id, spent.digest
            from unnest(v_users) as inserted (user_id)
            -- The subquery is lateral and has a limit, so that each user is looked up in the index.
            cross join lateral (
                select one.digest from headroom.spent_trials as one
                where one.bucket = v_bucket and one.digest = headroom.keyed_digest(
                    inserted.user_id,
                    (select secrets.inner_key from headroom.secrets where secrets.name = 'spent trials'),
                    (select secrets.outer_key from headroom.secrets where secrets.name = 'spent trials')
                )
                limit 1
            ) as spent
            order by inserted.user_id
        loop
            for v_spent in
                delete from headroom.spent_trials as spent
                where spent.bucket = v_bucket and spent.digest = v_digest
                returning spent.*
            loop
                update headroom.subscribers as subscriber
                set trial_started_at = least(subscriber.trial_started_at, v_spent.trial_started_at),
                    trial_ends_at = least(subscriber.trial_ends_at, v_spent.trial_ends_at)
                where subscriber.bucket = v_bucket and subscriber.user_id = v_user_id;
                select * into v_plan from headroom.plans as plans where plans.plan = v_spent.plan;
                -- VALUES is needed, because rows that a trigger inserts by a query on a machine of Citus are lost.
                insert into public.message_usage as usage (
                    bucket, user_id, billing_period, message_count, "limit", updated_at, plan, plan_limit, state,
                    started_at, expires_at
                ) values (
                    v_bucket, v_user_id, v_spent.plan, v_spent.messages, v_plan.allowance, headroom.now(),
                    -- Citus would send a CASE with an argument as one that compares it with a boolean.
                    v_spent.plan, v_plan.allowance, case when v_plan.cycle = 'trial' then 'trial' else 'free' end,
                    v_spent.trial_started_at, coalesce(
                        v_spent.trial_ends_at, v_spent.trial_started_at + make_interval(hours => 24 * v_plan.trial_days)
                    )
                )
                on conflict (user_id, billing_period) do update
                set message_count = least(usage.message_count::bigint + excluded.message_count, 2147483647);
            end loop;
        end loop;
    end loop;
    return null;
end
$$;
