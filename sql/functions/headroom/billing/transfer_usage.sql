-- Raises the receiver's counts in the open periods of some plans to the giver's used and held messages, once for each
-- event, giver and receiver. Otherwise a transfer would be a free reset. Locks the receiver's usage rows.
--
-- p_transfer: {"source", "event", "giver", "receiver", "plans": those of the transferred subscriptions that became what
-- gives the receiver access}.
create or replace function headroom.transfer_usage(p_transfer jsonb, p_reason text, p_event_id text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_giver constant uuid := (p_transfer ->> 'giver')::uuid;
    v_receiver constant uuid := (p_transfer ->> 'receiver')::uuid;
    v_plans constant text[] := array(select jsonb_array_elements_text(p_transfer -> 'plans'));
    v_entitlement constant headroom.entitlement := headroom.entitlement(v_receiver, headroom.now(), 'deny');
    v_anchor_day smallint;
    v_month date;
    v_monthly_plan text;
    v_month_label text;
    v_month_end timestamptz;
    v_period text;
    v_messages integer;
    v_plan headroom.plans;
    v_before public.message_usage;
    v_after public.message_usage;
    v_raised jsonb := '{}';
begin
    insert into headroom.usage_transfers (source, event_id, giver, receiver, made_at)
    values (p_transfer ->> 'source', p_transfer ->> 'event', v_giver, v_receiver, headroom.now())
    on conflict do nothing;
    if not found then
        return;
    end if;
    select min(plans.plan) into v_monthly_plan
    from headroom.plans as plans where plans.plan = any(v_plans) and plans.cycle = 'monthly';
    if v_monthly_plan is not null then
        v_month_label := v_entitlement.billing_period;
        v_month_end := v_entitlement.resets_at;
        if v_entitlement.cycle is distinct from 'monthly' then
            -- The receiver has passed the subscription on already, and the next transfer reads this row.
            select subscriber.anchor_day into v_anchor_day from headroom.subscribers as subscriber
            where subscriber.bucket = headroom.bucket_of(v_receiver) and subscriber.user_id = v_receiver;
            v_month := headroom.cycle_month(headroom.now(), coalesce(v_anchor_day, 1));
            v_month_label := headroom.month_label(v_month);
            v_month_end := headroom.cycle_start((v_month + interval '1 month')::date, coalesce(v_anchor_day, 1));
        end if;
    end if;
    for v_period, v_messages in
        select
            case when headroom.is_month(usage.billing_period) then v_month_label else usage.billing_period end,
            max(least(
                usage.message_count::bigint + headroom.held_messages(v_giver, usage.billing_period, usage.held),
                2147483647
            ))
        from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(v_giver) and usage.user_id = v_giver and (
            usage.billing_period = any(v_plans)
            or headroom.is_month(usage.billing_period) and v_month_label is not null and headroom.now() < coalesce(
                usage.resets_at, ((usage.billing_period || '-01')::timestamp + interval '1 month') at time zone 'UTC'
            )
        )
        group by 1
        order by 1
    loop
        continue when v_messages = 0;
        select * into v_plan from headroom.plans as plans
        where plans.plan = case
            when not headroom.is_month(v_period) then v_period
            when v_entitlement.cycle = 'monthly' then v_entitlement.plan
            else v_monthly_plan
        end;
        v_before := headroom.lock_usage(v_receiver, v_period);
        insert into public.message_usage as usage (
            bucket, user_id, billing_period, message_count, updated_at, plan, plan_limit, "limit", resets_at
        ) values (
            headroom.bucket_of(v_receiver), v_receiver, v_period, v_messages, headroom.now(), v_plan.plan,
            v_plan.allowance, v_plan.allowance,
            -- The next transfer reads the end of the month from this row.
            case when headroom.is_month(v_period) then v_month_end end
        )
        on conflict (user_id, billing_period) do update
        set message_count = excluded.message_count, updated_at = excluded.updated_at, usable_until = '-infinity'
        where usage.message_count < excluded.message_count
        returning * into v_after;
        if found then
            v_raised := v_raised || jsonb_build_object(v_period, jsonb_build_object(
                'messages', v_after.message_count - coalesce(v_before.message_count, 0),
                'generation', v_after.generation
            ));
            perform headroom.record_change(
                v_receiver, v_period, 'store_event',
                headroom.usage_record(v_period, v_before.message_count, v_before."limit"),
                headroom.usage_record(v_period, v_after.message_count, v_after."limit"), p_reason, p_event_id
            );
        end if;
    end loop;
    update headroom.usage_transfers as transfers set raised = v_raised
    where transfers.source = p_transfer ->> 'source' and transfers.event_id = p_transfer ->> 'event'
        and transfers.giver = v_giver and transfers.receiver = v_receiver and v_raised <> '{}';
end
$$;
