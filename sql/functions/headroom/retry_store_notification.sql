-- Tries a failed notification again, as it was read when it came. What did not fail is only looked at.
create or replace function headroom.retry_store_notification(p_source text, p_id text) returns jsonb
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_kept headroom.store_notifications;
begin
    perform headroom.lock_store_notifications();
    select * into v_kept from headroom.store_notifications as notifications
    where notifications.source = p_source and notifications.id = p_id;
    if not found then
        raise exception 'there is no such notification' using errcode = 'no_data_found',
            hint = 'select source, id from headroom.store_notifications where outcome = ''failed'' lists those that failed.';
    elsif v_kept.outcome = 'failed' and v_kept.effects is null then
        raise exception 'what was in it is not kept any more' using errcode = 'object_not_in_prerequisite_state',
            hint = 'It is pruned after 400 days. set_plan says where the user stands.';
    elsif v_kept.outcome = 'failed' then
        perform headroom.settle_store_notification(p_source, p_id);
    end if;
    return headroom.store_notification_answer(p_source, p_id);
end
$$;
revoke all on function headroom.retry_store_notification(text, text) from public;
grant execute on function headroom.retry_store_notification(text, text) to headroom_operator;
alter function headroom.retry_store_notification(text, text) owner to headroom_service;
