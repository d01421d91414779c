-- Locks users and reads what decides their requests. Parameters and result: headroom.lock_and_read_users.
select locked.* from headroom.lock_and_read_users(0::smallint, $1::uuid[], $2::boolean[], $3) as locked;
