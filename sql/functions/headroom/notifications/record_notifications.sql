-- Records a notification for each allowance of these users of which a tier is reached (headroom.crossed_allowances),
-- unless this tier or a higher one was recorded before: of the same period and plan, or of the same window. Returns
-- their number. Locks no usage row.
--
-- It reads the users' usage as it is now, so a tier that a user has left since is not recorded.
--
-- p_status: p for notifications that are to be sent; s for those of tiers that came with an import.
create or replace function headroom.record_notifications(p_users uuid[], p_status "char") returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_bucket smallint;
    v_users uuid[];
    v_new bigint;
    v_count bigint := 0;
begin
    -- There is one query for each bucket, because Citus sends it to the bucket's server.
    for v_bucket, v_users in
        select headroom.bucket_of(users.user_id), array_agg(distinct users.user_id)
        from unnest(p_users) as users (user_id)
        group by 1
    loop
        insert into headroom.notifications (
            user_id, billing_period, plan, allowance, part, window_opened_at, tier, status, body, created_at,
            next_attempt_at, period_ends_at
        )
        select
            crossed.user_id, crossed.billing_period, crossed.plan, crossed.allowance, crossed.part,
            crossed.window_opened_at, crossed.tier, p_status, headroom.notification_body(crossed), headroom.now(),
            headroom.now(), crossed.resets_at
        from headroom.crossed_allowances(v_bucket, v_users) as crossed
        where not exists (
            select from headroom.notifications as earlier
            where earlier.user_id = crossed.user_id and earlier.plan = crossed.plan
                and earlier.allowance = crossed.allowance and coalesce(earlier.part, '') = coalesce(crossed.part, '')
                -- A window outlasts the period in which it opened.
                and (earlier.billing_period = crossed.billing_period or crossed.window_opened_at is not null)
                and earlier.window_opened_at is not distinct from crossed.window_opened_at
                and array_position('{gentle,prominent,blocked}', earlier.tier)
                    >= array_position('{gentle,prominent,blocked}', crossed.tier)
        )
        -- Another instance may record it at the same time.
        on conflict do nothing;
        get diagnostics v_new = row_count;
        v_count := v_count + v_new;
    end loop;
    return v_count;
end
$$;
