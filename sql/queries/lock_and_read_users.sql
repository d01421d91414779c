-- Locks users and reads what decides their requests. Parameters and result: headroom.lock_and_read_users. The
-- entitlement is text that write_usage_rows takes as it is.
select
    (locked.snapshot).*, -- noqa: AL03
    (locked.entitlement).usable_until, -- noqa: AL03
    (locked.entitlement).has_subscription, -- noqa: AL03
    locked.entitlement::text as entitlement, locked.held_by_keys, locked.holds_end_at, locked.has_subscriber,
    locked.has_usage_row, locked.generation, locked.is_outdated,
    locked.window_period,
    (select revised.words_revision from headroom.plan_revision as revised) as words_revision
from headroom.lock_and_read_users($1::smallint, $2::uuid[], $3::boolean[], $4) as locked;
