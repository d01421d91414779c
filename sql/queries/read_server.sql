-- Reads the server's clock, whether its commits wait for a standby, and the newest timeline of its cluster that was
-- noted here; null if none was. $1 bigint: the cluster's system identifier; null if it is not known.
select
    headroom.now() as observed_at,
    pg_catalog.current_setting('synchronous_standby_names') <> '' as waits_for_standby,
    (
        select noted.timeline from headroom.newest_timelines as noted where noted.system_identifier = $1
    ) as newest_timeline;
