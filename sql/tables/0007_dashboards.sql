-- Messages by day, for dashboards, and the sentences that people read.

create table headroom.daily_activity (
    day date not null,
    messages bigint not null default 0,
    blocked bigint not null default 0,
    constraint daily_activity_pkey primary key (day),
    constraint day_is_in_the_years_2000_to_9999 check (day between '2000-01-01' and '9999-12-31'),
    -- A page adds up the days that it shows.
    constraint messages_are_sums check (messages between 0 and 1000000000000000),
    constraint blocked_are_sums check (blocked between 0 and 1000000000000000)
);
comment on table headroom.daily_activity is
    'What all instances counted and refused on each UTC day, added up every ten seconds. A statistic: counts are in '
    'message_usage.';
comment on column headroom.daily_activity.messages is
    'Messages counted, each once. What is given back later stays; what SQL functions count is not in it.';
comment on column headroom.daily_activity.blocked is 'CONSUME and RESERVE that were answered BLOCKED.';
grant select, insert, update on headroom.daily_activity to headroom_service;
grant select on headroom.daily_activity to headroom_dashboard, headroom_operator;

-- The sentences that people read, written by `headroom migrate` from the service's own words.
create table headroom.words (
    word text primary key,
    one text,
    other text not null
);
comment on column headroom.words.one is
    'The sentence where the number that it is about is exactly 1; null where it is the other as well.';
grant select on headroom.words to headroom_service, headroom_operator;
