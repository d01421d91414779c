-- Locks users and reads what decides their requests. Parameters and result: headroom.lock_and_read_users.
select
    (locked.snapshot).*, -- noqa: AL03
    locked.allowance, locked.usable_until, locked.held_by_keys, locked.holds_end_at,
    locked.has_subscription, locked.has_subscriber, locked.has_usage_row, locked.generation, locked.is_outdated
from headroom.lock_and_read_users(0::smallint, $1::uuid[], $2::boolean[], $3) as locked;
