-- Keeps a notification, or keeps it in these words instead of those of before.
create or replace function headroom.keep_store_notification(p_read headroom.store_notifications) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    insert into headroom.store_notifications as kept (
        source, id, type, happened_at, received_at, environment, identities, effects, payload, mentions, outcome,
        problem, attempts
    ) values (
        p_read.source, p_read.id, p_read.type, p_read.happened_at, p_read.received_at, p_read.environment,
        p_read.identities, p_read.effects, p_read.payload, p_read.mentions,
        case when p_read.problem is null then 'waiting' else 'failed' end, p_read.problem, 0
    )
    on conflict (source, id) do update
    set type = excluded.type, happened_at = excluded.happened_at, environment = excluded.environment,
        identities = excluded.identities, effects = excluded.effects, payload = excluded.payload,
        mentions = excluded.mentions, outcome = excluded.outcome, problem = excluded.problem;
end
$$;
revoke all on function headroom.keep_store_notification(headroom.store_notifications) from public;
grant execute on function headroom.keep_store_notification(headroom.store_notifications) to headroom_service;
