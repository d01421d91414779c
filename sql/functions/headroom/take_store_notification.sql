-- Takes what a store sent, in the form that docs/reference.md describes, and answers {"outcome", "problem", "user",
-- "plan", "state", "access", "reason", "expires", "previous_plan"}. Kept once, by source and id, in the transaction of its
-- effects; sent again it changes nothing, unless it could not be applied: then it is tried again.
create or replace function headroom.take_store_notification(p_notification jsonb) returns jsonb
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_read constant headroom.store_notifications := headroom.read_store_notification(p_notification);
    v_outcome text;
begin
    perform headroom.lock_store_notifications();
    select notifications.outcome into v_outcome from headroom.store_notifications as notifications
    where notifications.source = v_read.source and notifications.id = v_read.id;
    if v_outcome <> 'failed' then
        return headroom.store_notification_answer(v_read.source, v_read.id, 'duplicate');
    end if;
    perform headroom.keep_store_notification(v_read);
    perform headroom.settle_store_notification(v_read.source, v_read.id);
    return headroom.store_notification_answer(v_read.source, v_read.id);
end
$$;
revoke all on function headroom.take_store_notification(jsonb) from public;
grant execute on function headroom.take_store_notification(jsonb) to headroom_operator;
alter function headroom.take_store_notification(jsonb) owner to headroom_service;
