-- A fact of a day that is not there yet would outrank all that really happens until then.
create or replace function headroom.is_too_early(p_notification headroom.store_notifications) returns boolean
    language sql stable
    return p_notification.happened_at > headroom.now() + interval '1 day';
revoke all on function headroom.is_too_early(headroom.store_notifications) from public;
grant execute on function headroom.is_too_early(headroom.store_notifications) to headroom_service;
