-- Updates a user's usage rows after a change of the subscription. The caller has locked the subscriber. Locks the usage
-- rows.
--
-- The period that p_entitlement allows gets a row, so that clients that read message_usage see the new allowance before
-- the first message. Unused rows (headroom.is_unused_usage_row) follow from p_entitlement alone: that period's row is
-- rewritten, those of other periods are deleted. So the rows do not depend on the order of events. Used rows become
-- outdated; the next message rewrites them and keeps the count. An open window is moved into the period's row.
--
-- A plan with shorter windows ends an open one here, for good. Otherwise it would depend on the messages in between
-- whether a change to this plan and back finds the window again.
--
-- Nearly every renewal needs two statements: all rows are used, and the period has a row.
create or replace function headroom.apply_entitlement(p_user_id uuid, p_entitlement headroom.entitlement) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    -- It is null without access, and for a plan that allows no messages.
    v_period constant text := case
        when p_entitlement.has_subscription and p_entitlement.denial_reason is null
            and p_entitlement.allowance is distinct from 0
            then p_entitlement.billing_period
    end;
    -- It is null for a plan without windows. Without a subscription, nothing has ended the windows of the last plan.
    v_window_seconds constant integer := case
        when p_entitlement.has_subscription then p_entitlement.window_seconds
    end;
    -- This is the generation of the row of that period; null without one.
    v_generation bigint;
    v_unused text[];
    -- These periods have the plan's cycle, and began before the one that was paid.
    v_earlier text[];
    v_window headroom.usage_window;
begin
    perform headroom.detach_balances(p_user_id, headroom.now());
    select
        max(locked.generation) filter (where locked.billing_period = v_period),
        coalesce(array_agg(locked.billing_period) filter (where headroom.is_unused_usage_row(
            p_user_id, locked.billing_period, locked.message_count, locked.held, locked.released, locked.granted,
            locked.plan, locked.plan_limit, locked."limit",
            headroom.window_end(locked.window_opened_at, locked.window_ends_at, v_window_seconds)
        )), '{}'),
        coalesce(array_agg(locked.billing_period) filter (
            where v_period is not null and locked.started_at < p_entitlement.started_at
                and headroom.label_cycle(locked.billing_period) = p_entitlement.cycle
        ), '{}')
    into v_generation, v_unused, v_earlier
    from (
        select
            usage.billing_period, usage.generation, usage.message_count, usage.held, usage.released, usage.granted,
            usage.plan, usage.plan_limit, usage."limit", usage.window_opened_at, usage.window_ends_at,
            usage.started_at
        from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
        order by usage.billing_period for update
    ) as locked;
    -- A payment or a new anchor day changes the end of the open period. A period that was paid ends the one before it.
    -- Transfers and refunds read the end from the row.
    update public.message_usage as usage
    set usable_until = '-infinity',
        resets_at = case
            when usage.billing_period = p_entitlement.billing_period and usage.resets_at is not null
                then coalesce(p_entitlement.resets_at, usage.resets_at)
            when usage.billing_period = any(v_earlier) then least(usage.resets_at, p_entitlement.started_at)
            else usage.resets_at
        end,
        window_ends_at = headroom.window_end(usage.window_opened_at, usage.window_ends_at, v_window_seconds)
    where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
        and usage.billing_period <> all(v_unused)
        and (
            usage.usable_until > '-infinity'
            or usage.billing_period = p_entitlement.billing_period and usage.resets_at <> p_entitlement.resets_at
            or usage.billing_period = any(v_earlier) and usage.resets_at > p_entitlement.started_at
            or usage.window_ends_at
                > headroom.window_end(usage.window_opened_at, usage.window_ends_at, v_window_seconds)
        );
    if array_remove(v_unused, v_period) <> '{}' then
        delete from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
            and usage.billing_period = any(array_remove(v_unused, v_period));
    end if;
    if v_period = any(v_unused) or v_period is not null and v_generation is null then
        v_window := headroom.open_window(p_user_id, p_entitlement.window_seconds, headroom.now());
        begin
            perform headroom.write_usage_rows(
                headroom.bucket_of(p_user_id), array[p_entitlement],
                array[coalesce(v_generation, nextval('headroom.generations'))], array[0], array[0], array[0],
                array[p_entitlement.allowance],
                -- The next message moves messages of later months (counted while the clock was ahead) into this row.
                array[case
                    when p_entitlement.spent_messages is null
                        then least(p_entitlement.usable_until, v_window.holds_end_at)
                    else '-infinity'
                end],
                array[v_window]
            );
        exception
            when foreign_key_violation or serialization_failure or sqlstate 'HR011' then
                -- The subscription is kept without the row. If a foreign key of an adopted table refuses a user that
                -- the other table does not contain yet, or an older client has inserted the row meanwhile, the next
                -- message writes it. If a trigger discards it, the next message is refused with the reason.
                null;
        end;
    end if;
    perform headroom.attach_balances(p_user_id, p_entitlement.billing_period, headroom.now());
end
$$;
