-- Records a notification for each of these users who is at a tier of the open billing period, unless this tier or a
-- higher one of the same period and plan was recorded before. Returns their number. Locks no usage row.
--
-- It reads the users' usage as it is now, so a tier that a user has left since is not recorded. A window's limit has no
-- effect, because it can be reached several times a day.
--
-- p_status: p for notifications that are to be sent; s for those of tiers that came with an import.
create or replace function headroom.record_notifications(p_users uuid[], p_status "char") returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_bucket smallint;
    v_users uuid[];
    v_row record;
    v_new bigint;
    v_count bigint := 0;
begin
    -- There is one query for each bucket, because Citus sends it to the bucket's server.
    for v_bucket, v_users in
        select headroom.bucket_of(users.user_id), array_agg(distinct users.user_id)
        from unnest(p_users) as users (user_id)
        group by 1
    loop
        for v_row in
            select
                usage.user_id, usage.billing_period, usage.plan, usage.resets_at,
                headroom.tier_of(
                    headroom.taken_percent(usage.used::bigint + usage.held, usage."limit"), plans.gentle_percent,
                    plans.prominent_percent, plans.enforced
                ) as tier,
                usage.state, usage.used, usage.held, usage."limit"
            from headroom.usage_rows as usage
            join headroom.plans as plans on plans.plan = usage.plan
            where usage.bucket = v_bucket and usage.user_id = any(v_users) and not usage.has_ended and usage.is_open
                and not usage.has_no_access and usage.tier <> 'silent'
        loop
            continue when v_row.tier = 'silent';
            insert into headroom.notifications
                (user_id, billing_period, plan, tier, status, body, created_at, next_attempt_at, period_ends_at)
            select
                v_row.user_id, v_row.billing_period, v_row.plan, v_row.tier, p_status,
                headroom.notification_body(
                    v_row.user_id, v_row.billing_period, v_row.plan, v_row.state, v_row.tier, v_row.used, v_row.held,
                    v_row."limit", v_row.resets_at
                ),
                headroom.now(), headroom.now(), v_row.resets_at
            where not exists (
                select from headroom.notifications as earlier
                where earlier.user_id = v_row.user_id and earlier.billing_period = v_row.billing_period
                    and earlier.plan = v_row.plan
                    and array_position('{gentle,prominent,blocked}', earlier.tier)
                        >= array_position('{gentle,prominent,blocked}', v_row.tier)
            )
            -- Another instance may record it at the same time.
            on conflict (user_id, billing_period, plan, tier) do nothing;
            get diagnostics v_new = row_count;
            v_count := v_count + v_new;
        end loop;
    end loop;
    return v_count;
end
$$;
