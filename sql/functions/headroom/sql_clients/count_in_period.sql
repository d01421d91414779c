-- Counts one message for a caller that names a period and a limit, and returns the answer as JSON. A null p_limit adds
-- no limit. Locks the subscriber, then the usage row.
--
-- A user with a plan is counted in the plan's open period, under the lower of the plan's limit and p_limit. A user
-- without a plan is counted in the caller's period, under the caller's limit. headroom.check_period_label says which
-- periods the caller may name. A message that CONSUME would refuse is never allowed.
create or replace function headroom.count_in_period(
    p_user_id uuid, p_billing_period text, p_limit integer
) returns jsonb
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_unknown_users_policy constant text := headroom.unknown_users_policy();
    v_entitlement headroom.entitlement;
    v_snapshot headroom.usage_snapshot;
    v_is_allowed boolean := false;
begin
    if p_user_id is null or p_billing_period is null then
        raise exception 'p_user_id and p_billing_period must not be null' using errcode = 'null_value_not_allowed';
    elsif p_limit < 0 then
        raise exception 'p_limit must not be negative' using errcode = 'invalid_parameter_value';
    end if;
    -- This creates the subscriber without a subscription, and restores a trial that was used before forget_user. Other
    -- changes of the user's plan or usage wait for this lock.
    perform headroom.lock_subscriber(p_user_id);
    v_entitlement := headroom.entitlement(p_user_id, v_now, v_unknown_users_policy);
    v_snapshot := headroom.read_usage_snapshot(p_user_id, v_unknown_users_policy);
    if not v_entitlement.has_subscription and not exists (
        select from headroom.subscribers
        where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and trial_started_at is not null
    ) then
        perform headroom.check_period_label(p_billing_period, null);
        return headroom.count_without_plan(
            p_user_id, p_billing_period,
            case
                -- CONSUME denies users without a plan, or their plan allows no messages.
                when v_entitlement.denial_reason is not null then 0
                when headroom.is_unenforced(v_snapshot.plan) then p_limit
                when v_snapshot."limit" = 0 then 0
                -- CONSUME would refuse, because of an open window.
                when not headroom.fits(
                    1, v_snapshot.window_used, v_snapshot.window_held, v_snapshot.window_limit
                ) then 0
                -- CONSUME counts in the same row.
                when p_billing_period = v_entitlement.billing_period then least(p_limit, v_snapshot."limit")
                -- CONSUME refuses, because the messages of that row are used up.
                when not headroom.snapshot_fits(v_snapshot, 1) then 0
                else p_limit
            end
        );
    end if;
    perform headroom.check_period_label(p_billing_period, v_entitlement.billing_period);
    -- The fast path does not lock the subscriber.
    perform headroom.lock_usage(p_user_id, v_entitlement.billing_period);
    v_snapshot := headroom.read_usage_snapshot(p_user_id, v_unknown_users_policy);
    if headroom.fits(1, v_snapshot.used, v_snapshot.held, p_limit) then
        v_snapshot := (headroom.count_messages(p_user_id, 1, null, null, v_unknown_users_policy)).snapshot;
        v_is_allowed := v_snapshot.messages > 0;
    end if;
    return headroom.count_result(
        v_is_allowed, v_snapshot.used, v_snapshot.held, least(v_snapshot."limit", p_limit),
        v_snapshot.denial_reason is not null
    );
end
$$;
