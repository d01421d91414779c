-- Makes notifications pending again, with all their attempts: those with these ids, or all that have failed if p_ids is
-- null. Returns their ids. The id and the body stay, so a receiver recognizes one that it has received before.
create or replace function headroom.replay_notifications(p_ids uuid[]) returns setof uuid
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    update headroom.notifications as notifications
    set status = 'p', attempts = 0, problem = null, delivered_at = null, next_attempt_at = headroom.now()
    where case when p_ids is null then notifications.status = 'f' else notifications.id = any(p_ids) end
    returning notifications.id;
end
$$;
