-- Raises a user's counts of the open periods to those of another: {"monthly": 160, "trial": 41}. Else a transfer would be
-- a free reset. A month is raised only where the user has a monthly plan: without one, no month is open.
create or replace function headroom.raise_usage(p_user_id uuid, p_usage jsonb, p_reason text, p_id text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_terms constant headroom.terms := headroom.terms_of(p_user_id, headroom.now(), 'deny');
    v_period text;
    v_messages integer;
    v_plan headroom.plans;
    v_before public.message_usage;
    v_after public.message_usage;
begin
    for v_period, v_messages in
        select
            case counted.kind when 'monthly' then v_terms.billing_period else counted.kind end,
            counted.messages::integer
        from jsonb_each_text(p_usage) as counted (kind, messages)
        where counted.kind <> 'monthly' or v_terms.cycle = 'monthly'
        order by 1
    loop
        select * into v_plan from headroom.plans as plans
        where plans.plan = case when headroom.is_month(v_period) then v_terms.plan else v_period end;
        v_before := headroom.lock_usage(p_user_id, v_period);
        insert into public.message_usage as usage (
            bucket, user_id, billing_period, message_count, updated_at, plan, plan_limit, "limit", resets_at
        ) values (
            headroom.bucket_of(p_user_id), p_user_id, v_period, v_messages, headroom.now(), v_plan.plan, v_plan.allowance,
            v_plan.allowance,
            -- The next transfer reads from it until when the month is open.
            case when headroom.is_month(v_period) then v_terms.resets_at end
        )
        on conflict (user_id, billing_period) do update
        set message_count = excluded.message_count, updated_at = excluded.updated_at, usable_until = '-infinity'
        where usage.message_count < excluded.message_count
        returning * into v_after;
        if found then
            perform headroom.record_change(
                p_user_id, v_period, 'store_event',
                headroom.usage_record(v_period, v_before.message_count, v_before."limit"),
                headroom.usage_record(v_period, v_after.message_count, v_after."limit"), p_reason, p_id
            );
        end if;
    end loop;
end
$$;
revoke all on function headroom.raise_usage(uuid, jsonb, text, text) from public;
grant execute on function headroom.raise_usage(uuid, jsonb, text, text) to headroom_service;
