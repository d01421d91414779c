-- Forgets what is in notifications that are older, at most so many at once: payload, identities, effects. That they
-- came stays for good, so that none is ever applied twice. At least 30 days are kept: stores send again for days.
create or replace function headroom.prune_store_notifications(
    p_keep interval default '400 days', p_limit integer default 1000
) returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_count bigint;
begin
    if p_keep is null or p_keep < interval '30 days' then
        raise exception 'notifications are kept for at least 30 days' using errcode = 'invalid_parameter_value';
    end if;
    with old as (
        select notifications.source, notifications.id
        from headroom.store_notifications as notifications
        where notifications.effects is not null and notifications.received_at < headroom.now() - p_keep
        order by notifications.received_at
        limit p_limit
        for update skip locked
    )
    update headroom.store_notifications as notifications
    set identities = '{}', effects = null, payload = null, mentions = '{}'
    from old
    where notifications.source = old.source and notifications.id = old.id;
    get diagnostics v_count = row_count;
    return v_count;
end
$$;
revoke all on function headroom.prune_store_notifications(interval, integer) from public;
grant execute on function headroom.prune_store_notifications(interval, integer) to headroom_operator;
alter function headroom.prune_store_notifications(interval, integer) owner to headroom_service;
