-- The newest timeline of a database cluster that an instance of the service has seen.
--
-- Only a superseded primary has a row: an instance that reaches both servers notes there that the timeline is no longer
-- the newest, for the instances that do not reach the successor. A dump that is restored into another cluster has the
-- row, too, but not the cluster's identifier.
create table headroom.newest_timelines (
    system_identifier bigint primary key,
    timeline bigint not null,
    noted_at timestamptz not null,
    constraint timeline_is_a_number_of_32_bits check (timeline between 1 and 4294967295)
);
comment on table headroom.newest_timelines is
    'A row here says that this server was superseded by one of a newer timeline; the service does not count on it.';
grant select, insert, update on headroom.newest_timelines to headroom_service;
