-- Updates a user's usage rows after a change of the subscription. The caller has locked the subscriber. Locks the usage
-- rows.
--
-- The period that p_entitlement allows gets a row, so that clients that read message_usage see the new allowance before
-- the first message. Unused rows (headroom.is_unused_usage_row) follow from p_entitlement alone: the one of that period
-- is rewritten, those of other periods are deleted. So the rows do not depend on the order of events. Used rows become
-- outdated; the next message rewrites them and keeps the count.
--
-- Nearly every renewal needs two statements: all rows are used, and the period has a row.
create or replace function headroom.apply_entitlement(p_user_id uuid, p_entitlement headroom.entitlement) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    -- Null without access, and for a plan that allows no messages.
    v_period constant text := case
        when p_entitlement.has_subscription and p_entitlement.denial_reason is null
            and p_entitlement.allowance is distinct from 0
            then p_entitlement.billing_period
    end;
    v_has_row boolean;
    v_unused text[];
begin
    select
        coalesce(bool_or(locked.billing_period = v_period), false),
        coalesce(array_agg(locked.billing_period) filter (where headroom.is_unused_usage_row(
            p_user_id, locked.billing_period, locked.message_count, locked.held, locked.released, locked.granted,
            locked.plan, locked.plan_limit, locked."limit"
        )), '{}')
    into v_has_row, v_unused
    from (
        select
            usage.billing_period, usage.message_count, usage.held, usage.released, usage.granted, usage.plan,
            usage.plan_limit, usage."limit"
        from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
        order by usage.billing_period for update
    ) as locked;
    -- A new anchor day changes the end of the open month. Transfers and refunds read it from the row.
    update public.message_usage as usage
    set usable_until = '-infinity',
        resets_at = case
            when usage.billing_period = p_entitlement.billing_period and usage.resets_at is not null
                then coalesce(p_entitlement.resets_at, usage.resets_at)
            else usage.resets_at
        end
    where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
        and usage.billing_period <> all(v_unused)
        and (
            usage.usable_until > '-infinity'
            or usage.billing_period = p_entitlement.billing_period and usage.resets_at <> p_entitlement.resets_at
        );
    if array_remove(v_unused, v_period) <> '{}' then
        delete from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
            and usage.billing_period = any(array_remove(v_unused, v_period));
    end if;
    if v_period = any(v_unused) then
        update public.message_usage as usage
        set held = 0, "limit" = p_entitlement.allowance, plan_limit = p_entitlement.allowance,
            plan = p_entitlement.plan, state = p_entitlement.state, started_at = p_entitlement.started_at,
            resets_at = p_entitlement.resets_at, expires_at = p_entitlement.expires_at,
            previous_plan = p_entitlement.previous_plan, renews = p_entitlement.renews,
            usable_until = p_entitlement.usable_until, plan_revision = p_entitlement.plan_revision
        where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
            and usage.billing_period = v_period;
    elsif v_period is not null and not v_has_row then
        begin
            insert into public.message_usage (
                bucket, user_id, billing_period, updated_at, "limit", plan_limit, plan, state, started_at, resets_at,
                expires_at, previous_plan, renews, usable_until, plan_revision
            ) values (
                headroom.bucket_of(p_user_id), p_user_id, v_period, headroom.now(), p_entitlement.allowance,
                p_entitlement.allowance, p_entitlement.plan, p_entitlement.state, p_entitlement.started_at,
                p_entitlement.resets_at, p_entitlement.expires_at, p_entitlement.previous_plan, p_entitlement.renews,
                p_entitlement.usable_until, p_entitlement.plan_revision
            )
            on conflict (user_id, billing_period) do nothing;
        exception
            when foreign_key_violation then
                -- A foreign key of an adopted table refuses a user that the other table does not contain yet. The
                -- subscription is kept, and the first message creates the row.
                null;
        end;
    end if;
end
$$;
