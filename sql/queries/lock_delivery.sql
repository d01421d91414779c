-- Returns whether this session delivers notifications. If a login that may not deliver them has the lock, returns that
-- session as stranger.
select
    locked.delivers,
    (
        select format('process %s of %s', held.pid, session.usename)
        from pg_locks as held
        join pg_stat_activity as session on session.pid = held.pid
        where
            not locked.delivers
            and held.locktype = 'advisory' and held.granted and held.objsubid = 1
            and held.database = session.datid and session.datname = current_database()
            and held.objid = (hashtext('headroom notifications')::bigint & 4294967295)::oid
            and not pg_has_role(session.usesysid, 'headroom_service', 'member')
        limit 1
    ) as stranger
from headroom.lock_delivery() as locked (delivers);
