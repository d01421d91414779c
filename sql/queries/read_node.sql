-- Reads what a PostgreSQL server has and lacks to be a node of a distributed database.
select
    current_user::text as login,
    (select login.rolsuper from pg_roles as login where login.rolname = current_user) as is_superuser,
    current_setting('server_version_num')::integer / 10000 as major_version,
    'citus' = any(
        string_to_array(replace(current_setting('shared_preload_libraries', true), ' ', ''), ',')
    ) as is_preloaded,
    current_setting('wal_level') as wal_level,
    -- Minor releases have had this setting since 2026.
    coalesce(current_setting('output_plugin_libraries', true), 'citus') as output_plugins,
    current_setting('max_prepared_transactions')::integer as prepared_transactions,
    (select count(*) from pg_extension as installed where installed.extname = 'citus') > 0 as has_extension,
    to_regnamespace('headroom') is not null as has_schema,
    pg_is_in_recovery() as is_standby,
    current_database()::text as database,
    pg_encoding_to_char(encoding)::text as encoding,
    datcollate::text as collation
from pg_database where datname = current_database();
