-- Returns those of p_users that have data: more than an empty row in headroom.subscribers, a subscription, or a usage
-- row. p_users is ascending, and all of one bucket; so is the result.
create or replace function headroom.users_with_data(p_bucket smallint, p_users uuid[]) returns uuid[]
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    -- With a limit, each user is looked up in an index.
    return array(
        select request.user_id from unnest(p_users) as request (user_id)
        left join lateral (
            select true as is_found from headroom.subscribers as one
            where one.bucket = p_bucket and one.user_id = request.user_id and num_nonnulls(
                one.operator_set_at, one.previous_plan, one.trial_started_at, one.trial_ends_at,
                one.store_trial_started_at, one.trial_used_up_at
            ) > 0
            limit 1
        ) as subscriber on true
        left join lateral (
            select true as is_found from headroom.subscriptions as one
            where one.bucket = p_bucket and one.user_id = request.user_id
            limit 1
        ) as subscription on true
        left join lateral (
            select true as is_found from public.message_usage as one
            where one.bucket = p_bucket and one.user_id = request.user_id
            limit 1
        ) as usage on true
        where coalesce(subscriber.is_found, subscription.is_found, usage.is_found)
        order by request.user_id
    );
end
$$;
