-- Locks the rows of p_users in headroom.subscribers and returns the users that have one, both in ascending order.
-- set_plan, forget_user and billing events lock them, too, so the users' entitlements do not change until the
-- transaction ends. The lock is not `for share`: two sessions with a shared lock would deadlock when one of them
-- updates the row.
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
    v_locked := headroom.lock_subscribers_of(p_bucket, p_users);
    -- A grant or an operator may have created a usage row without a subscriber. The subscriber must be locked before
    -- that row: another session that creates the subscriber would wait for the row, and this one for the subscriber. In
    -- that case all subscribers are created, in order. If others are locked already, none is created: the service
    -- executes users without a subscriber in a transaction of their own.
    if v_locked = '{}' and exists (
        select
        from unnest(p_users, p_may_create) as request (user_id, may_create)
        where request.may_create and (
            select true from public.message_usage as usage
            where usage.bucket = p_bucket and usage.user_id = request.user_id
            limit 1
        )
    ) then
        for v_user in
            select request.user_id from unnest(p_users, p_may_create) as request (user_id, may_create)
            where request.may_create
            order by request.user_id
        loop
            perform headroom.lock_subscriber(v_user);
            v_locked := v_locked || v_user;
        end loop;
    end if;
    return v_locked;
end
$$;
