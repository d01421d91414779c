-- Reads the release of Citus in a distributed database; null in another.
select headroom.citus_release() as citus_release;
