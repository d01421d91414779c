-- Returns the fields of an answer line for a user whose usage snapshot is p_snapshot, without the sentences, which only
-- the service has; null if the plan is missing. Instants are whole seconds, cut as the service cuts them. p_messages:
-- the number of messages requested; 0 if the request only reads.
--
-- It is in PL/pgSQL, which prepares its expressions once in a transaction. A query would prepare them for each answer,
-- which takes thirteen times as long.
create or replace function headroom.format_answer(
    p_user_id uuid, p_snapshot headroom.usage_snapshot, p_messages integer
) returns headroom.answer
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_plan headroom.plans;
    v_answer headroom.answer;
    v_has_access constant boolean := p_snapshot.denial_reason is null;
    v_used constant bigint := p_snapshot.used;
    v_limit constant bigint := p_snapshot."limit";
    v_taken constant bigint := v_used + p_snapshot.held;
    v_window_used constant bigint := p_snapshot.window_used;
    v_window_limit constant bigint := p_snapshot.window_limit;
    v_window_taken constant bigint := v_window_used + p_snapshot.window_held;
    v_remaining constant bigint := case
        when not v_has_access then 0
        when v_limit is not null then greatest(v_limit - v_taken, 0)
    end;
    v_window_remaining constant bigint := case
        when not v_has_access then 0 else greatest(v_window_limit - v_window_taken, 0)
    end;
    v_is_trial boolean;
    v_tier_before text;
    -- These are the instants at which the user can send again after the reset, and after the end of the window; null if
    -- access ends before that.
    v_available_at timestamptz;
    v_window_available_at timestamptz;
    v_details headroom.subscription_details;
begin
    select plans.* into v_plan from headroom.plans as plans where plans.plan = p_snapshot.plan;
    if not found then
        return null;
    end if;
    v_is_trial := v_plan.cycle = 'trial';
    if (p_snapshot.expires_at <= p_snapshot.resets_at) is not true
        and p_snapshot.resets_at > p_snapshot.observed_at then
        v_available_at := p_snapshot.resets_at;
    end if;
    if v_has_access and (p_snapshot.expires_at <= p_snapshot.window_ends_at) is not true then
        v_window_available_at := p_snapshot.window_ends_at;
    end if;

    v_answer."user" := p_user_id;
    v_answer.plan := v_plan.plan;
    v_answer.state := p_snapshot.state;
    v_answer.tier := case when v_has_access then headroom.fuller_tier(
        v_taken, v_limit, v_window_taken, v_window_limit, v_plan.gentle_percent, v_plan.prominent_percent,
        v_plan.enforced
    ) else 'blocked' end;
    v_answer.display := case
        when v_answer.tier = 'blocked' then 'blocked'
        when v_is_trial then 'trial'
        when v_answer.tier = 'silent' and (v_plan.cycle <> 'lifetime' or v_limit is null) then 'hidden'
        else 'compact'
    end;
    v_answer.used := v_used;
    v_answer.held := nullif(p_snapshot.held, 0);
    v_answer."limit" := v_limit;
    v_answer.remaining := v_remaining;
    v_answer.period := p_snapshot.billing_period;
    if v_has_access and v_limit is not null then
        v_answer.resets := headroom.instant_text(p_snapshot.resets_at);
    end if;
    -- An active subscription that a store renews does not end at expires_at.
    if v_is_trial or p_snapshot.state = 'cancelled'
        or p_snapshot.state in ('active', 'free') and p_snapshot.renews is not true then
        v_answer.expires := headroom.instant_text(p_snapshot.expires_at);
    end if;
    if v_is_trial then
        -- The days of a trial with an end of its own, such as a store's trial, follow from that end.
        v_answer.days := case
            when p_snapshot.expires_at is null then v_plan.trial_days
            else greatest(1, ceil(extract(epoch from p_snapshot.expires_at - p_snapshot.started_at) / 86400)::integer)
        end;
        v_answer.day := greatest(1, least(v_answer.days, 1 + floor(
            extract(epoch from p_snapshot.observed_at - p_snapshot.started_at) / 86400
        )::integer));
    end if;
    v_answer.window_limit := v_window_limit;
    v_answer.window_used := v_window_used;
    if v_window_limit is not null then
        v_answer.window_remaining := v_window_remaining;
    end if;
    if v_has_access then
        v_answer.window_resets := headroom.instant_text(p_snapshot.window_ends_at);
    end if;

    if p_snapshot.messages > 0 then
        v_tier_before := headroom.fuller_tier(
            v_taken - p_snapshot.messages, v_limit, v_window_taken - p_snapshot.messages, v_window_limit,
            v_plan.gentle_percent, v_plan.prominent_percent, v_plan.enforced
        );
        v_answer.crossed := nullif(v_answer.tier, v_tier_before);
        v_answer.shadow := nullif(coalesce(v_taken > v_limit or v_window_taken > v_window_limit, false), false);
    elsif not v_has_access then
        v_answer.reason := p_snapshot.denial_reason;
    elsif v_plan.enforced then
        -- A request that only reads has a reason only if the user has no access.
        v_answer.reason := case
            when v_plan.cycle = 'lifetime' and v_limit = 0 then 'no_subscription'
            when p_messages = 0 then null
            when v_taken >= v_limit then case when v_is_trial then 'trial_limit_reached' else 'limit_reached' end
            when v_window_taken >= v_window_limit then 'window_limit_reached'
            when v_taken + p_messages > v_limit then 'exceeds_remaining'
            else 'window_exceeds_remaining'
        end;
    end if;
    v_answer.status := case
        when p_messages = 0 then 'OK' when v_answer.reason is null then 'ALLOWED' else 'BLOCKED'
    end;
    if v_answer.reason in ('limit_reached', 'exceeds_remaining', 'window_limit_reached', 'window_exceeds_remaining')
    then
        -- It is null if one of the two that refuse the messages never allows them.
        v_answer.retry_after := ceil(extract(epoch from case
            when v_taken + p_messages <= v_limit or v_limit is null
                then case when p_messages <= v_window_limit then v_window_available_at end
            when v_is_trial or p_messages > v_plan.allowance then null
            when v_window_taken + p_messages <= v_window_limit or v_window_limit is null then v_available_at
            when p_messages > v_window_limit or v_window_available_at is null or v_available_at is null then null
            else greatest(v_available_at, v_window_available_at)
        end - p_snapshot.observed_at));
    end if;

    v_answer.previous_plan := p_snapshot.previous_plan;
    v_details := headroom.subscription_details(
        p_user_id, p_snapshot.state, p_snapshot.plan, p_snapshot.expires_at, p_snapshot.renews
    );
    v_answer.price := v_details.price;
    v_answer.currency := v_details.currency;
    v_answer.manage := v_details.manage;
    return v_answer;
end
$$;
