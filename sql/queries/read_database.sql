-- What the service tells of its database: the newest migration; by how many milliseconds the slowest standby is behind;
-- the settings with which a commit that was answered may be lost; and the server process of this session.
--
-- The lag is null where there is no standby, and where this role may not see them (pg_read_all_stats lets it). A
-- standby that has replayed everything reports no lag at all after a while. synchronous_commit is what sessions begin
-- with here; the service's own raise it.
select
    (select max(migrations.number) from headroom.migrations as migrations) as schema_version,
    (
        select (extract(epoch from max(coalesce(standby.replay_lag, interval '0'))) * 1000)::bigint
        from pg_catalog.pg_stat_replication as standby
        where standby.state = 'streaming'
    ) as replication_lag_ms,
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
