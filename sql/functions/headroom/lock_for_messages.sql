-- Locks the rows of p_users in headroom.subscribers and returns the users that have one, both in ascending order.
-- set_plan, forget_user and billing events lock them too, so the users' entitlements do not change until the
-- transaction ends. Not `for share`: two sessions with a shared lock would deadlock when one of them updates the row.
--
-- p_users is ascending without duplicates. p_may_create: for each user, whether the caller may create the subscriber,
-- as for CONSUME and RESERVE.
create or replace function headroom.lock_for_messages(p_bucket smallint, p_users uuid[], p_may_create boolean[])
    returns uuid[]
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_locked uuid[];
    v_user uuid;
begin
    -- Lateral, so that each user is looked up in this order (docs/decisions/0003-lock-order.md).
    v_locked := array(
        select locked.user_id
        from unnest(p_users) as request (user_id)
        cross join lateral (
            select subscriber.user_id from headroom.subscribers as subscriber
            where subscriber.bucket = p_bucket and subscriber.user_id = request.user_id
            for no key update
        ) as locked
    );
    if cardinality(v_locked) = cardinality(p_users) then
        return v_locked;
    end if;
    -- A grant or an operator may have created a usage row without a subscriber. The caller locks that row next, and the
    -- subscriber must be locked before it: another session that creates the subscriber would wait for the row, and the
    -- caller for that session.
    for v_user in
        select request.user_id
        from unnest(p_users, p_may_create) as request (user_id, may_create)
        where request.may_create and request.user_id <> all(v_locked) and (
            select true from public.message_usage as usage
            where usage.bucket = p_bucket and usage.user_id = request.user_id
            limit 1
        )
        order by request.user_id
    loop
        perform headroom.lock_subscriber(v_user);
        v_locked := v_locked || v_user;
    end loop;
    return array(select locked.user_id from unnest(v_locked) as locked (user_id) order by locked.user_id);
end
$$;
