-- Returns those of p_users that have data: more than an empty row in headroom.subscribers, a subscription, or a usage
-- row. p_users is ascending, and all of one bucket; so is the result.
create or replace function headroom.users_with_data(p_bucket smallint, p_users uuid[]) returns uuid[]
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_users uuid[];
begin
    v_users := array(
        select request.user_id from unnest(p_users) as request (user_id)
        cross join lateral (
            select true as is_found from headroom.subscribers as subscriber
            where subscriber.bucket = p_bucket and subscriber.user_id = request.user_id
                and (
                    subscriber.operator_set_at is not null or subscriber.previous_plan is not null
                    or subscriber.trial_started_at is not null or subscriber.trial_ends_at is not null
                    or subscriber.store_trial_started_at is not null or subscriber.trial_used_up_at is not null
                )
            limit 1
        ) as found
    );
    v_users := v_users || array(
        select request.user_id from unnest(p_users) as request (user_id)
        cross join lateral (
            select true as is_found from headroom.subscriptions as subscription
            where subscription.bucket = p_bucket and subscription.user_id = request.user_id
            limit 1
        ) as found
    );
    v_users := v_users || array(
        select request.user_id from unnest(p_users) as request (user_id)
        cross join lateral (
            select true as is_found from public.message_usage as usage
            where usage.bucket = p_bucket and usage.user_id = request.user_id
            limit 1
        ) as found
    );
    return array(select distinct one.user_id from unnest(v_users) as one (user_id) order by one.user_id);
end
$$;
