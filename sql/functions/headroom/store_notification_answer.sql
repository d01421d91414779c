-- What became of a notification, and where its user stands now.
create or replace function headroom.store_notification_answer(
    p_source text, p_id text, p_outcome text default null
) returns jsonb
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select headroom.store_event_answer(coalesce(p_outcome, notifications.outcome), notifications.user_id)
            || jsonb_strip_nulls(jsonb_build_object('problem', notifications.problem))
        from headroom.store_notifications as notifications
        where notifications.source = p_source and notifications.id = p_id
    );
end
$$;
revoke all on function headroom.store_notification_answer(text, text, text) from public;
grant execute on function headroom.store_notification_answer(text, text, text) to headroom_service;
