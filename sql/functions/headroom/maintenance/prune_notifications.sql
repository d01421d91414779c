-- Deletes at most p_limit notifications of billing periods and windows that have ended more than p_keep ago, and
-- returns their number. p_keep is at least 7 days.
create or replace function headroom.prune_notifications(
    p_keep interval default '30 days', p_limit integer default 1000
) returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_count bigint;
begin
    if p_keep is null or p_keep < interval '7 days' then
        raise exception 'notifications are kept for at least 7 days' using errcode = 'invalid_parameter_value';
    end if;
    delete from headroom.notifications as notifications
    where notifications.id = any(array(
        select old.id from headroom.notifications as old
        where old.period_ends_at < headroom.now() - p_keep
        order by old.period_ends_at
        limit p_limit
        for update skip locked
    ));
    get diagnostics v_count = row_count;
    return v_count;
end
$$;
