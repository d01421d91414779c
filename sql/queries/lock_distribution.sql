-- Tries to lock where the users' rows are for this session, for commands that change it. Returns null, or who has the
-- lock.
select case
    when not pg_try_advisory_lock(hashtext('headroom distribution'))
        then coalesce(
            (
                select format('process %s of %s', held.pid, session.usename)
                from pg_locks as held
                join pg_stat_activity as session on session.pid = held.pid
                where
                    held.locktype = 'advisory' and held.granted and held.objsubid = 1
                    and held.database = session.datid and session.datname = current_database()
                    and held.objid = (hashtext('headroom distribution')::bigint & 4294967295)::oid
            ),
            'another process'
        )
end as holder;
