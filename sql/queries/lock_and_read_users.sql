-- Locks users and reads what decides their requests. Parameters and result: headroom.lock_and_read_users. The
-- entitlement is text that write_usage_rows takes as it is. balances: JSON of headroom.balance, with expires_at in
-- microseconds since 1970.
select
    (locked.snapshot).*, -- noqa: AL03
    (locked.entitlement).usable_until, -- noqa: AL03
    (locked.entitlement).has_subscription, -- noqa: AL03
    locked.entitlement::text as entitlement, locked.held_by_keys, locked.holds_end_at, locked.has_subscriber,
    locked.has_usage_row, locked.generation, locked.is_outdated,
    locked.window_period, locked.plain_limit,
    case
        when locked.balances is not null then coalesce((
            select json_agg(json_build_object(
                'key', one.key, 'messages', one.messages, 'expires_at', case
                    when one.expires_at < 'infinity' then (extract(epoch from one.expires_at) * 1000000)::bigint
                end
            ) order by one.ordinality)
            from unnest(locked.balances) with ordinality as one
        ), '[]')::text
    end as balances,
    (select revised.words_revision from headroom.plan_revision as revised) as words_revision
from headroom.lock_and_read_users($1::smallint, $2::uuid[], $3::boolean[], $4) as locked;
