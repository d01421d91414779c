-- Counts one message of a user without a plan, in a period and under a limit that the caller brings. Null is unlimited.
create or replace function headroom.count_without_plan(
    p_user_id uuid, p_billing_period text, p_limit integer
) returns jsonb
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_used integer;
    v_held integer;
    v_is_allowed boolean;
begin
    perform headroom.check_usage(usage) from public.message_usage as usage
    where usage.user_id = p_user_id and usage.billing_period = p_billing_period;
    if coalesce(p_limit, 1) > 0 then
        -- Holds that have ended by themselves must not refuse a message. They are added up with the row locked, or a
        -- hold that is being made would be missed.
        perform from public.message_usage as usage
        where usage.user_id = p_user_id and usage.billing_period = p_billing_period and usage.held > 0
        for update;
        if found then
            update public.message_usage as usage set held = headroom.held_now(usage)
            where usage.user_id = p_user_id and usage.billing_period = p_billing_period;
        end if;
        insert into public.message_usage as usage (user_id, billing_period, message_count, "limit", updated_at)
        values (p_user_id, p_billing_period, 1, p_limit, headroom.now())
        on conflict (user_id, billing_period) do update
        set message_count = least(usage.message_count::bigint + 1, 2147483647),
            "limit" = case when usage.plan is null then excluded."limit" else usage."limit" end,
            updated_at = excluded.updated_at
        where usage.message_count::bigint + usage.held < coalesce(p_limit::bigint, 9223372036854775807)
        returning usage.message_count, usage.held into v_used, v_held;
    end if;
    v_is_allowed := v_used is not null;
    if not v_is_allowed then
        select usage.message_count, headroom.held_now(usage) into v_used, v_held
        from public.message_usage as usage
        where usage.user_id = p_user_id and usage.billing_period = p_billing_period;
    end if;
    return headroom.count_record(v_is_allowed, coalesce(v_used, 0), coalesce(v_held, 0), p_limit);
end
$$;
revoke all on function headroom.count_without_plan(uuid, text, integer) from public;
grant execute on function headroom.count_without_plan(uuid, text, integer) to headroom_service;
