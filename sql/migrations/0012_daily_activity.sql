-- Messages by day, for dashboards. Why the lanes add them up and no statement that counts does:
-- docs/decisions/0017-days-are-added-up-beside-the-counting.md.

create table headroom.daily_activity (
    day date not null,
    messages bigint not null default 0,
    blocked bigint not null default 0,
    constraint daily_activity_pkey primary key (day),
    constraint messages_are_sums check (messages >= 0),
    constraint blocked_are_sums check (blocked >= 0)
);
comment on table headroom.daily_activity is
    'What all instances counted and refused on each UTC day, added up every ten seconds. A statistic: counts are in '
    'message_usage.';
comment on column headroom.daily_activity.messages is
    'Messages counted, each once. What is given back later stays; what SQL functions count is not in it.';
comment on column headroom.daily_activity.blocked is 'CONSUME and RESERVE that were answered BLOCKED.';

-- Adds what an instance has counted since it last did this to the day that it is now. The row of a day is locked for the
-- length of this statement, every ten seconds by each instance, and nobody who counts waits for it.
create function headroom.add_daily_activity(p_messages bigint, p_blocked bigint) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    insert into headroom.daily_activity as activity (day, messages, blocked)
    values ((headroom.now() at time zone 'UTC')::date, p_messages, p_blocked)
    on conflict (day) do update
    set messages = activity.messages + excluded.messages, blocked = activity.blocked + excluded.blocked;
end
$$;

-- Rights --------------------------------------------------------------------------------------------------------------

revoke all on headroom.daily_activity from public;
revoke all on type headroom.daily_activity from public;
revoke all on function headroom.add_daily_activity(bigint, bigint) from public;
grant select, insert, update on headroom.daily_activity to headroom_service;
grant execute on function headroom.add_daily_activity(bigint, bigint) to headroom_service;
-- A dashboard finds the table by its name only where it may look into the schema, which opens nothing else in there.
grant usage on schema headroom to headroom_dashboard;
grant select on headroom.daily_activity to headroom_dashboard, headroom_operator;
