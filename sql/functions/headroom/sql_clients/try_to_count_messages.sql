-- One attempt of headroom.count_messages. Raises unique_violation or serialization_failure if another session has
-- created rows of the user meanwhile.
create or replace function headroom.try_to_count_messages(
    p_user_id uuid, p_messages integer, p_unknown_users_policy text
) returns headroom.usage_snapshot
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_bucket constant smallint := headroom.bucket_of(p_user_id);
    v_user headroom.locked_user;
    v_snapshot headroom.usage_snapshot;
    v_is_allowed boolean;
begin
    select locked.* into strict v_user from headroom.lock_and_read_users(
        v_bucket, array[p_user_id], array[p_unknown_users_policy <> 'deny'], p_unknown_users_policy
    ) as locked;
    v_is_allowed := v_user.denial_reason is null
        and v_user.used::bigint + v_user.held + p_messages <= coalesce(v_user."limit", 9223372036854775807);
    if v_is_allowed then
        v_user.used := least(v_user.used::bigint + p_messages, 2147483647);
        if not v_user.has_subscription then
            perform headroom.create_first_subscriptions(
                v_bucket, array[p_user_id], array[v_user.plan], array[v_user.started_at],
                array[(select plans.cycle = 'trial' from headroom.plans as plans where plans.plan = v_user.plan)],
                array[v_user.has_subscriber]
            );
        end if;
    end if;
    if v_is_allowed or v_user.is_outdated then
        perform headroom.write_usage_rows(
            v_bucket, array[p_user_id], array[v_user.billing_period], array[v_user.generation], array[v_user.used],
            array[v_user.held], array[0], array[v_user."limit"], array[v_user.allowance], array[v_user.plan],
            array[v_user.state], array[v_user.started_at], array[v_user.resets_at], array[v_user.expires_at],
            array[v_user.previous_plan], array[v_user.renews],
            array[case
                when v_is_allowed or v_user.has_subscription then least(v_user.usable_until, v_user.holds_end_at)
                else '-infinity'
            end], array[v_user.plan_revision]
        );
        if not v_user.has_usage_row and v_user.has_subscriber and headroom.is_month(v_user.billing_period) then
            perform headroom.end_earlier_months(
                v_bucket, array[p_user_id], array[v_user.billing_period], v_user.observed_at
            );
        end if;
    end if;
    return row(
        v_user.plan, v_user.state, v_user.denial_reason, v_user.billing_period, v_user.used, v_user.held,
        v_user."limit", v_user.started_at, v_user.resets_at, v_user.expires_at, v_user.previous_plan, v_user.renews,
        v_user.observed_at, v_user.plan_revision, case when v_is_allowed then 'allowed' else 'blocked' end,
        case when v_is_allowed then p_messages else 0 end, false
    )::headroom.usage_snapshot;
end
$$;
