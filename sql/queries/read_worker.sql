-- Reads a worker's clock, and whether its commits wait for a standby.
select
    headroom.now() as observed_at,
    pg_catalog.current_setting('synchronous_standby_names') <> '' as waits_for_standby;
