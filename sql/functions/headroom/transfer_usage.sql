-- Raises the receiver's counts in the open periods to the giver's counts, once for each event, giver and receiver.
-- Otherwise a transfer would be a free reset. A month is only raised if the receiver has a monthly plan. Locks the
-- receiver's usage rows. p_transfer: {"source", "event", "giver", "receiver"}.
create or replace function headroom.transfer_usage(p_transfer jsonb, p_reason text, p_event_id text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_giver constant uuid := (p_transfer ->> 'giver')::uuid;
    v_receiver constant uuid := (p_transfer ->> 'receiver')::uuid;
    v_entitlement constant headroom.entitlement := headroom.entitlement(v_receiver, headroom.now(), 'deny');
    v_period text;
    v_messages integer;
    v_plan headroom.plans;
    v_before public.message_usage;
    v_after public.message_usage;
begin
    insert into headroom.usage_transfers (source, event_id, giver, receiver, made_at)
    values (p_transfer ->> 'source', p_transfer ->> 'event', v_giver, v_receiver, headroom.now())
    on conflict do nothing;
    if not found then
        return;
    end if;
    for v_period, v_messages in
        select
            case
                when headroom.is_month(usage.billing_period) then v_entitlement.billing_period
                else usage.billing_period
            end,
            max(usage.message_count)
        from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(v_giver) and usage.user_id = v_giver and usage.message_count > 0 and (
            not headroom.is_month(usage.billing_period)
            or v_entitlement.cycle = 'monthly' and headroom.now() < coalesce(
                usage.resets_at, ((usage.billing_period || '-01')::timestamp + interval '1 month') at time zone 'UTC'
            )
        )
        group by 1
        order by 1
    loop
        select * into v_plan from headroom.plans as plans
        where plans.plan = case when headroom.is_month(v_period) then v_entitlement.plan else v_period end;
        v_before := headroom.lock_usage(v_receiver, v_period);
        insert into public.message_usage as usage (
            bucket, user_id, billing_period, message_count, updated_at, plan, plan_limit, "limit", resets_at
        ) values (
            headroom.bucket_of(v_receiver), v_receiver, v_period, v_messages, headroom.now(), v_plan.plan,
            v_plan.allowance, v_plan.allowance,
            -- The next transfer reads the end of the month from this row.
            case when headroom.is_month(v_period) then v_entitlement.resets_at end
        )
        on conflict (user_id, billing_period) do update
        set message_count = excluded.message_count, updated_at = excluded.updated_at, usable_until = '-infinity'
        where usage.message_count < excluded.message_count
        returning * into v_after;
        if found then
            perform headroom.record_change(
                v_receiver, v_period, 'store_event',
                headroom.usage_record(v_period, v_before.message_count, v_before."limit"),
                headroom.usage_record(v_period, v_after.message_count, v_after."limit"), p_reason, p_event_id
            );
        end if;
    end loop;
end
$$;
