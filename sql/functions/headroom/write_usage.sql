-- Writes a usage row with the present entitlement, so that the next message takes the fast path. The caller has locked
-- the row. Raises HR011 if the row does not take the values.
create or replace function headroom.write_usage(
    p_user_id uuid, p_entitlement headroom.entitlement, p_limit integer, p_used bigint, p_held bigint,
    p_released integer, p_holds_end_at timestamptz, p_at timestamptz
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    update public.message_usage as usage
    set message_count = p_used,
        held = least(p_held, 2147483647),
        released = least(usage.released::bigint + p_released, 2147483647),
        updated_at = case
            when p_used <> usage.message_count or p_held <> usage.held then p_at else usage.updated_at
        end,
        "limit" = p_limit, plan_limit = p_entitlement.allowance,
        plan = p_entitlement.plan, state = p_entitlement.state, started_at = p_entitlement.started_at,
        resets_at = p_entitlement.resets_at, expires_at = p_entitlement.expires_at,
        previous_plan = p_entitlement.previous_plan, renews = p_entitlement.renews,
        usable_until = case
            -- The row of a user without access is only written by a commit or a release, and is not usable. Neither is
            -- the row of a user without a subscription: the slow path starts the trial with the first message.
            when p_entitlement.denial_reason is null and p_entitlement.has_subscription
                then least(p_entitlement.usable_until, p_holds_end_at)
            else '-infinity'
        end,
        plan_revision = p_entitlement.plan_revision
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id
        and billing_period = p_entitlement.billing_period;
    if not found then
        -- Otherwise a message would be allowed and not counted.
        perform headroom.raise_discarded_row('public.message_usage', p_user_id);
    end if;
end
$$;
