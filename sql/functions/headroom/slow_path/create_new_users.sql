-- Creates the subscribers and the subscriptions of new users whose messages fit, and returns their entitlements in
-- ascending order. None of p_users, which are ascending without duplicates, has a subscriber. p_messages: the messages
-- of each. Leaves out a user who has a usage row, because the subscriber must be locked before it, and one who has
-- spent something before being forgotten.
--
-- New users differ in nothing else, so the entitlement is derived once.
create or replace function headroom.create_new_users(
    p_bucket smallint, p_users uuid[], p_messages bigint[], p_at timestamptz, p_unknown_users_policy text
) returns headroom.entitlement[]
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_users uuid[];
    v_has_spent constant boolean := exists (select from headroom.spent_trials as spent where spent.bucket = p_bucket);
    v_entitlement headroom.entitlement;
    v_entitlements headroom.entitlement[];
begin
    v_users := array(
        select request.user_id
        from unnest(p_users) as request (user_id)
        where (
            select true from public.message_usage as usage
            where usage.bucket = p_bucket and usage.user_id = request.user_id
            limit 1
        ) is null
        and not (v_has_spent and exists (
            select from headroom.spent_trials as spent
            where spent.bucket = p_bucket and spent.digest = headroom.spent_trial_digest(request.user_id)
        ))
    );
    if v_users = '{}' then
        return '{}';
    end if;
    v_entitlement := headroom.entitlement(v_users[1], p_at, p_unknown_users_policy);
    if v_entitlement.denial_reason is not null or v_entitlement.window_messages is not null then
        return '{}';
    end if;
    v_users := array(
        select request.user_id from unnest(v_users) as request (user_id)
        where p_messages[width_bucket(request.user_id, p_users)]
            <= coalesce(case when v_entitlement.enforced then v_entitlement.allowance end, 2147483647)
    );
    perform headroom.create_first_subscriptions(
        p_bucket, v_users, array_fill(v_entitlement.plan, array[cardinality(v_users)]),
        array_fill(v_entitlement.started_at, array[cardinality(v_users)]),
        array_fill(v_entitlement.cycle = 'trial', array[cardinality(v_users)]),
        array_fill(false, array[cardinality(v_users)])
    );
    v_entitlement.has_subscription := true;
    foreach v_entitlement.user_id in array v_users loop
        v_entitlements := v_entitlements || v_entitlement;
    end loop;
    return v_entitlements;
end
$$;
