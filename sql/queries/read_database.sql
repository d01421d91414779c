-- What the service tells of its database: the newest migration, and by how many milliseconds the slowest standby is
-- behind. Null where there is no standby, and where this role may not see them (pg_read_all_stats lets it). A standby
-- that has replayed everything reports no lag at all after a while.
select
    (select max(migrations.number) from headroom.migrations as migrations) as schema_version,
    (
        select (extract(epoch from max(coalesce(standby.replay_lag, interval '0'))) * 1000)::bigint
        from pg_catalog.pg_stat_replication as standby
        where standby.state = 'streaming'
    ) as replication_lag_ms;
