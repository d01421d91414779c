-- Locks a user's row in headroom.subscribers, if there is one. set_plan, forget_user and store events lock it, too, so terms
-- that are read after this stay as they are until the transaction ends. Not `for share`: introduce updates the row, and two
-- sessions that share it would deadlock there.
--
-- p_makes_known: whether the caller may make the user known, as CONSUME and RESERVE do.
create or replace function headroom.lock_for_message(p_user_id uuid, p_makes_known boolean) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform from headroom.subscribers
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id for no key update;
    if not found and p_makes_known and exists (
        select from public.message_usage where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id
    ) then
        -- A grant or an operator made the usage row. It is locked next, and the subscriber's row comes before it.
        perform headroom.lock_subscriber(p_user_id);
    end if;
end
$$;
