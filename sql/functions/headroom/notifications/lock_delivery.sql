-- Returns whether this session delivers notifications: it has, or gets, the lock that one session at a time has until
-- it ends. A session that does not get the lock does not wait, because it tries again with its next call.
create or replace function headroom.lock_delivery() returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    -- A lock is counted: each call would take it again and exceed its counter.
    if current_setting('headroom.delivers_notifications', true) = 'yes' then
        return true;
    end if;
    if not pg_try_advisory_lock(hashtext('headroom notifications')) then
        return false;
    end if;
    perform set_config('headroom.delivers_notifications', 'yes', false);
    return true;
end
$$;
