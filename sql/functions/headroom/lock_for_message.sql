-- Locks a user's row in headroom.subscribers if there is one. set_plan, forget_user and billing events lock it too, so
-- the user's entitlement does not change until the transaction ends. Not `for share`: two sessions with a shared lock
-- would deadlock when create_first_subscription updates the row.
--
-- p_may_create: whether the caller may create the subscriber, as for CONSUME and RESERVE.
--
-- Returns whether the subscriber is locked. If it is not, and the caller may create it, the caller must not lock a
-- usage row before that: another session that creates the subscriber would wait for the row next, and the caller for
-- that session.
create or replace function headroom.lock_for_message(p_user_id uuid, p_may_create boolean) returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform from headroom.subscribers
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id for no key update;
    if found then
        return true;
    end if;
    if p_may_create and exists (
        select from public.message_usage where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id
    ) then
        -- A grant or an operator created the usage row, which the caller locks next. The subscriber must be locked
        -- before it.
        perform headroom.lock_subscriber(p_user_id);
        return true;
    end if;
    return false;
end
$$;
