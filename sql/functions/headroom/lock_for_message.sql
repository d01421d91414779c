-- Locks the subscriber's row of a user who sends a message, against set_plan, which takes the same lock: terms that are read
-- after this hold until the transaction ends. Not for share: introduce takes the row for itself, and two sessions that
-- share it would deadlock there.
create or replace function headroom.lock_for_message(p_user_id uuid, p_is_counted boolean) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform from headroom.subscribers as subscriber where subscriber.user_id = p_user_id for no key update;
    if not found and p_is_counted and exists (
        select from public.message_usage as usage where usage.user_id = p_user_id
    ) then
        -- A row that a grant or an operator made. It is locked next, and the subscriber comes first.
        perform headroom.lock_subscriber(p_user_id);
    end if;
end
$$;
revoke all on function headroom.lock_for_message(uuid, boolean) from public;
grant execute on function headroom.lock_for_message(uuid, boolean) to headroom_service;
