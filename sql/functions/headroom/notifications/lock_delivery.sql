-- Returns whether this session delivers notifications: it has, or gets, the lock that one session at a time has until
-- it ends. Sessions that wait are not needed, because each asks again.
create or replace function headroom.lock_delivery() returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    -- A lock is counted: taking it again with each call would exceed its counter.
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
