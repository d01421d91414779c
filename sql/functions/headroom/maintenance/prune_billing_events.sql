-- Sets the payload of events older than p_keep to null, for at most p_limit events, and returns their number. The
-- events stay, so that a repeated event is not applied. p_keep is at least 30 days, because stores repeat events for
-- days.
create or replace function headroom.prune_billing_events(
    p_keep interval default '400 days', p_limit integer default 1000
) returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_count bigint;
begin
    if p_keep is null or p_keep < interval '30 days' then
        raise exception 'events are kept for at least 30 days' using errcode = 'invalid_parameter_value';
    end if;
    update headroom.billing_events as events set payload = null
    where events.ctid = any(array(
        select old.ctid from headroom.billing_events as old
        where old.payload is not null and old.received_at < headroom.now() - p_keep
        order by old.received_at
        limit p_limit
        for update skip locked
    ));
    get diagnostics v_count = row_count;
    return v_count;
end
$$;
