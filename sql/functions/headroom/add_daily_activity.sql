-- Adds what an instance has counted since it last did this to the day that it is now. The row of a day is locked for the
-- length of this statement, every ten seconds by each instance, and no counting waits for it.
create or replace function headroom.add_daily_activity(p_messages bigint, p_blocked bigint) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    insert into headroom.daily_activity as activity (day, messages, blocked)
    values ((headroom.now() at time zone 'UTC')::date, p_messages, p_blocked)
    on conflict (day) do update
    set messages = least(activity.messages::numeric + excluded.messages, 1000000000000000),
        blocked = least(activity.blocked::numeric + excluded.blocked, 1000000000000000);
end
$$;
revoke all on function headroom.add_daily_activity(bigint, bigint) from public;
grant execute on function headroom.add_daily_activity(bigint, bigint) to headroom_service;
