-- Messages per day for dashboards.

create table headroom.daily_activity (
    day date not null,
    messages bigint not null default 0,
    blocked bigint not null default 0,
    constraint daily_activity_pkey primary key (day),
    constraint day_is_in_the_years_2000_to_9999 check (day between '2000-01-01' and '9999-12-31'),
    -- Bounded, because dashboards add up days.
    constraint messages_are_sums check (messages between 0 and 1000000000000000),
    constraint blocked_are_sums check (blocked between 0 and 1000000000000000)
);
comment on table headroom.daily_activity is
    'Messages and refusals of all instances per UTC day, updated every ten seconds. A statistic: counts are in '
    'message_usage.';
comment on column headroom.daily_activity.messages is
    'Messages counted by the service, each once, also if they were released later. SQL functions are not included.';
comment on column headroom.daily_activity.blocked is 'CONSUME and RESERVE requests that were answered BLOCKED.';
grant select, insert, update on headroom.daily_activity to headroom_service;
grant select on headroom.daily_activity to headroom_dashboard, headroom_operator;
