-- Raises HR006 for the first value that a check constraint forbids, in the rows from which a user's entitlement
-- follows. It is called only if there is one (headroom.are_valid_inputs). Returns true if it finds none.
create or replace function headroom.raise_invalid_inputs(p_user_id uuid, p_unknown_users_policy text) returns boolean
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_subscriber headroom.subscribers;
    v_spent headroom.spent_trials;
    v_subscription headroom.subscriptions;
    v_plan headroom.plans;
begin
    select * into v_subscriber from headroom.subscribers
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id;
    perform headroom.raise_invalid_row('headroom.subscribers', to_jsonb(v_subscriber));
    if v_subscriber.user_id is null and p_unknown_users_policy = 'trial' then
        for v_spent in
            select * from headroom.spent_trials as spent
            where spent.bucket = headroom.bucket_of(p_user_id) and spent.digest = headroom.spent_trial_digest(p_user_id)
        loop
            perform headroom.raise_invalid_row('headroom.spent_trials', to_jsonb(v_spent));
        end loop;
    end if;
    for v_subscription in
        select * from headroom.subscriptions
        where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id
    loop
        perform headroom.raise_invalid_row('headroom.subscriptions', to_jsonb(v_subscription));
    end loop;
    for v_plan in select * from headroom.plans loop
        perform headroom.raise_invalid_row('headroom.plans', to_jsonb(v_plan));
    end loop;
    return true;
end
$$;
