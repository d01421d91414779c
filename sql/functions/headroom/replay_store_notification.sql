-- Reads a kept notification anew, in place of what it was taken for: after an adapter was mended, or a product mapped to
-- another plan. What waited for it is applied as well. Where that fails and it was applied before, everything stays.
create or replace function headroom.replay_store_notification(p_notification jsonb) returns jsonb
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_read headroom.store_notifications := headroom.read_store_notification(p_notification);
    v_kept headroom.store_notifications;
    v_answer jsonb;
begin
    perform headroom.lock_store_notifications();
    select * into v_kept from headroom.store_notifications as notifications
    where notifications.source = v_read.source and notifications.id = v_read.id;
    if not found then
        raise exception 'there is no such notification' using errcode = 'no_data_found',
            hint = 'select source, id from headroom.store_notifications lists those that are kept.';
    end if;
    perform headroom.keep_store_notification(v_read);
    perform headroom.settle_store_notification(v_read.source, v_read.id, v_kept.outcome <> 'failed');
    v_answer := headroom.store_notification_answer(v_read.source, v_read.id);
    if v_answer ->> 'outcome' = 'failed' and v_kept.outcome <> 'failed' then
        raise exception 'it was applied and could not be now; nothing was changed: %', v_answer ->> 'problem'
            using errcode = 'HR005';
    end if;
    return v_answer;
end
$$;
revoke all on function headroom.replay_store_notification(jsonb) from public;
grant execute on function headroom.replay_store_notification(jsonb) to headroom_operator;
alter function headroom.replay_store_notification(jsonb) owner to headroom_service;
