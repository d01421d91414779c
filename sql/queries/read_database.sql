-- Reads facts about the database: the newest migration, the lag of the slowest standby in milliseconds, for which
-- standbys commits wait, how many standbys are connected, the settings with which an answered commit may be lost, and
-- the server process of this session.
--
-- The lag is null without a standby, and if this role may not see standbys (pg_read_all_stats allows it). A standby
-- that has replayed everything reports no lag after a while. synchronous_commit is the default of new sessions; the
-- service's own sessions raise it. synchronous_standbys has those of which this role may not see whether commits wait.
select
    (select max(migrations.number) from headroom.migrations as migrations) as schema_version,
    (
        select (extract(epoch from max(coalesce(standby.replay_lag, interval '0'))) * 1000)::bigint
        from pg_catalog.pg_stat_replication as standby
        where standby.state = 'streaming'
    ) as replication_lag_ms,
    pg_catalog.current_setting('synchronous_standby_names') as synchronous_standby_names,
    (select count(*) from pg_catalog.pg_stat_replication) as standbys,
    (
        select count(*) from pg_catalog.pg_stat_replication as standby
        where coalesce(standby.sync_state in ('sync', 'quorum'), true)
    ) as synchronous_standbys,
    array(
        select setting.name || '=' || setting.value
        from (
            values
                ('fsync', pg_catalog.current_setting('fsync')),
                ('full_page_writes', pg_catalog.current_setting('full_page_writes')),
                ('synchronous_commit', pg_catalog.current_setting('synchronous_commit'))
        ) as setting (name, value)
        where case setting.name
            when 'synchronous_commit' then
                setting.value in ('off', 'local') and pg_catalog.current_setting('synchronous_standby_names') <> ''
            else setting.value = 'off'
        end
        order by setting.name
    ) as durability_risks,
    pg_catalog.pg_backend_pid() as process_id;
