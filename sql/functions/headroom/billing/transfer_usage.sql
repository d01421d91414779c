-- Raises the receiver's counts in the open periods of some plans to the giver's used and held messages, once for each
-- event, giver and receiver, and the receiver's window to the giver's. Otherwise a transfer would be a free reset. A
-- period that has ended is open while its renewal is awaited, until the next one begins. The counts and windows of
-- models and members go along by the same rules. Locks the receiver's rows.
--
-- p_transfer: {"source", "event", "giver", "receiver", "plans": the plans of the transferred subscriptions that became
-- the receiver's access, "window": the giver's open window before this event (headroom.usage_window)}.
create or replace function headroom.transfer_usage(p_transfer jsonb, p_reason text, p_event_id text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_giver constant uuid := (p_transfer ->> 'giver')::uuid;
    v_receiver constant uuid := (p_transfer ->> 'receiver')::uuid;
    v_plans constant text[] := array(select jsonb_array_elements_text(p_transfer -> 'plans'));
    v_entitlement constant headroom.entitlement := headroom.entitlement(v_receiver, headroom.now(), 'deny');
    v_anchor_day constant integer := coalesce((
        select subscriber.anchor_day from headroom.subscribers as subscriber
        where subscriber.bucket = headroom.bucket_of(v_receiver) and subscriber.user_id = v_receiver
    ), 1);
    -- It is read here, because another server may have another setting.
    v_leeway constant interval := headroom.renewal_leeway();
    v_period text;
    v_plan_name text;
    v_ends_at timestamptz;
    v_messages integer;
    v_given_periods text[];
    v_raised_parts jsonb;
    v_plan headroom.plans;
    v_before public.message_usage;
    v_after public.message_usage;
    v_raised jsonb := '{}';
    v_raised_window jsonb;
    v_window headroom.usage_window
        := jsonb_populate_record(null::headroom.usage_window, nullif(p_transfer -> 'window', 'null'));
    v_present_window headroom.usage_window;
begin
    insert into headroom.usage_transfers (source, event_id, giver, receiver, made_at)
    values (p_transfer ->> 'source', p_transfer ->> 'event', v_giver, v_receiver, headroom.now())
    on conflict do nothing;
    if not found then
        return;
    end if;
    -- The giver's messages are not taken from the receiver's balances.
    perform headroom.detach_balances(v_receiver, headroom.now());
    for v_period, v_plan_name, v_ends_at, v_messages, v_given_periods in
        -- These are the receiver's periods in each cycle of these plans.
        with periods as (
            select distinct on (plans.cycle)
                plans.cycle,
                case when clock.is_open then v_entitlement.plan else plans.plan end as plan,
                case
                    when clock.is_open then v_entitlement.billing_period
                    else headroom.period_label(plans.cycle, clock.day)
                end as label,
                case when clock.is_open then v_entitlement.started_at end as begins_at,
                case
                    when clock.is_open then v_entitlement.resets_at
                    else headroom.period_start(
                        plans.cycle, headroom.next_period_day(plans.cycle, clock.day), v_anchor_day,
                        coalesce(plans.time_zone, 'UTC')
                    )
                end as ends_at
            from headroom.plans as plans
            cross join lateral (
                select
                    -- If not, the receiver has passed the subscription on already, and the next transfer reads this
                    -- row.
                    v_entitlement.cycle is not distinct from plans.cycle as is_open,
                    headroom.period_day(
                        plans.cycle, headroom.now(), v_anchor_day, coalesce(plans.time_zone, 'UTC')
                    ) as day
            ) as clock
            where plans.plan = any(v_plans) and headroom.is_periodic(plans.cycle)
            order by plans.cycle, plans.plan
        )
        select
            coalesce(periods.label, usage.billing_period), coalesce(periods.plan, usage.billing_period),
            -- The next transfer reads the end of the period from the row.
            periods.ends_at,
            max(least(
                usage.message_count::bigint + headroom.held_messages(v_giver, usage.billing_period, usage.held),
                2147483647
            )),
            array_agg(usage.billing_period)
        from public.message_usage as usage
        left join periods on periods.cycle = headroom.label_cycle(usage.billing_period)
        where usage.bucket = headroom.bucket_of(v_giver) and usage.user_id = v_giver and (
            usage.billing_period = any(v_plans)
            or periods.cycle is not null and headroom.now() < coalesce(
                usage.resets_at + case
                    when usage.renews and periods.begins_at < usage.resets_at then v_leeway
                    else interval '0'
                end,
                headroom.period_start(
                    periods.cycle,
                    headroom.next_period_day(periods.cycle, headroom.label_day(usage.billing_period)), 1, 'UTC'
                )
            )
        )
        group by 1, 2, 3
        order by 1
    loop
        continue when v_messages = 0;
        select * into v_plan from headroom.plans as plans where plans.plan = v_plan_name;
        v_before := headroom.lock_usage(v_receiver, v_period);
        insert into public.message_usage as usage (
            bucket, user_id, billing_period, message_count, updated_at, plan, plan_limit, "limit", started_at, resets_at
        ) values (
            headroom.bucket_of(v_receiver), v_receiver, v_period, v_messages, headroom.now(), v_plan.plan,
            v_plan.allowance, v_plan.allowance,
            case when v_period = v_entitlement.billing_period then v_entitlement.started_at end, v_ends_at
        )
        on conflict (user_id, billing_period) do update
        set message_count = excluded.message_count, updated_at = excluded.updated_at, usable_until = '-infinity'
        where usage.message_count < excluded.message_count
        returning * into v_after;
        if not found then
            v_after := v_before;
        end if;
        v_raised_parts := headroom.transfer_parts(v_giver, v_given_periods, v_receiver, v_period);
        if v_after is distinct from v_before or v_raised_parts is not null then
            v_raised := v_raised || jsonb_build_object(v_period, jsonb_strip_nulls(jsonb_build_object(
                'messages', v_after.message_count - coalesce(v_before.message_count, 0),
                'generation', v_after.generation, 'parts', v_raised_parts
            )));
            perform headroom.record_change(
                v_receiver, v_period, 'store_event',
                headroom.usage_record(v_period, v_before.message_count, v_before."limit"),
                headroom.usage_record(v_period, v_after.message_count, v_after."limit"), p_reason, p_event_id
            );
        end if;
    end loop;
    perform headroom.attach_balances(v_receiver, v_entitlement.billing_period, headroom.now());
    if v_plans <> '{}' then
        -- This event may have transferred another window to the giver.
        v_present_window := headroom.open_window(v_giver, 2678400, headroom.now());
        if v_present_window.opened_at is not null then
            if v_present_window.opened_at = v_window.opened_at then
                v_present_window.ends_at := v_window.ends_at;
            end if;
            v_window := v_present_window;
        end if;
        v_raised_window := headroom.transfer_window(
            v_receiver, v_window, case when v_entitlement.plan = any(v_plans) then v_entitlement.window_seconds end,
            v_entitlement.billing_period
        );
        v_raised_parts := headroom.transfer_part_windows(
            v_giver, v_receiver, case when v_entitlement.plan = any(v_plans) then v_entitlement.plan end,
            headroom.receiving_period(v_receiver, v_entitlement.billing_period)
        );
        if v_raised_parts is not null then
            v_raised_window := coalesce(v_raised_window, '{}') || jsonb_build_object('parts', v_raised_parts);
        end if;
    end if;
    update headroom.usage_transfers as transfers set raised = v_raised, raised_window = v_raised_window
    where transfers.source = p_transfer ->> 'source' and transfers.event_id = p_transfer ->> 'event'
        and transfers.giver = v_giver and transfers.receiver = v_receiver
        and (v_raised <> '{}' or v_raised_window is not null);
end
$$;
