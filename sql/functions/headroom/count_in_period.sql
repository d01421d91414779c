-- For callers that bring their own period and limit, from before there were plans here. p_limit null is unlimited. A
-- row that Headroom counts in under a plan keeps the plan's limit; p_limit then only decides about this message.
create or replace function headroom.count_in_period(
    p_user_id uuid, p_billing_period text, p_limit integer
) returns jsonb
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_count integer;
    v_held integer;
    v_allowed boolean;
begin
    if p_user_id is null or p_billing_period is null then
        raise exception 'p_user_id and p_billing_period must not be null' using errcode = 'null_value_not_allowed';
    elsif not (headroom.is_month(p_billing_period) or p_billing_period ~ '^[a-z][a-z0-9_]{0,31}$') then
        raise exception 'p_billing_period must be YYYY-MM, or a plan that never resets, such as trial'
            using errcode = 'invalid_parameter_value';
    elsif p_limit < 0 then
        raise exception 'p_limit must not be negative' using errcode = 'invalid_parameter_value';
    end if;
    if not headroom.is_month(p_billing_period) then
        -- A spent trial is spent here too.
        perform headroom.bring_back(p_user_id);
    end if;
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
        returning usage.message_count, usage.held into v_count, v_held;
    end if;
    v_allowed := v_count is not null;
    if not v_allowed then
        select usage.message_count, headroom.held_now(usage) into v_count, v_held
        from public.message_usage as usage
        where usage.user_id = p_user_id and usage.billing_period = p_billing_period;
    end if;
    return jsonb_build_object(
        'allowed', v_allowed,
        'current_count', coalesce(v_count, 0),
        'limit', p_limit,
        'remaining', greatest(p_limit::bigint - coalesce(v_count, 0) - coalesce(v_held, 0), 0)
    );
end
$$;
revoke all on function headroom.count_in_period(uuid, text, integer) from public;
grant execute on function headroom.count_in_period(uuid, text, integer) to headroom_service;
