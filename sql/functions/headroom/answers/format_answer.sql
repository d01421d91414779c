-- Returns the fields of an answer line for a user whose usage snapshot is p_snapshot, without the sentences, which only
-- the service has; null if the plan is missing. Instants are whole seconds, cut as the service cuts them. p_messages:
-- the number of messages requested; 0 if the request only reads. p_parts: headroom.requested_parts, after the request;
-- null if it names none.
--
-- It is in PL/pgSQL, which prepares its expressions once in a transaction. A query would prepare them for each answer,
-- which takes thirteen times as long.
create or replace function headroom.format_answer(
    p_user_id uuid, p_snapshot headroom.usage_snapshot, p_messages integer,
    p_parts headroom.part_usage[] default null
) returns headroom.answer
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_plan headroom.plans;
    v_answer headroom.answer;
    v_has_access constant boolean := p_snapshot.denial_reason is null;
    -- The first is the period's, the second the window's.
    v_allowances headroom.allowance[];
    v_one headroom.allowance;
    v_part headroom.part_usage;
    v_prefix text;
    v_messages bigint;
    v_free bigint;
    v_percent bigint;
    v_percent_before bigint;
    v_is_over boolean := false;
    v_is_used_up boolean := false;
    -- It is that of the first allowance that is used up, or else of the first that has too few left.
    v_reason text;
    -- It is infinite if one of the allowances that refuse the messages never allows them.
    v_retry_at timestamptz;
    v_is_trial boolean;
    v_details headroom.subscription_details;
    -- What is counted beyond the limit without balances was taken from these.
    v_extra constant integer := p_snapshot.extra - headroom.drawn_messages(
        p_snapshot.used, p_snapshot.held, p_snapshot."limit", p_snapshot.extra, null
    );
begin
    select plans.* into v_plan from headroom.plans as plans where plans.plan = p_snapshot.plan;
    if not found then
        return null;
    end if;
    v_is_trial := v_plan.cycle = 'trial';
    v_allowances := headroom.allowances(p_snapshot, p_parts, v_plan.cycle, v_plan.allowance + coalesce(v_extra, 0));
    for v_ordinal in reverse cardinality(v_allowances) .. 1 loop
        v_one := v_allowances[v_ordinal];
        continue when v_one."limit" is null;
        v_messages := p_messages::bigint * v_one.weight;
        v_free := v_one."limit" - v_one.taken;
        v_percent := greatest(v_percent, headroom.taken_percent(v_one.taken, v_one."limit"));
        if p_snapshot.messages > 0 then
            v_percent_before := greatest(
                v_percent_before, headroom.taken_percent(v_one.taken - v_messages, v_one."limit")
            );
            v_is_over := v_is_over or v_free < 0;
        elsif v_messages > v_free then
            v_prefix := case v_one.name when 'period' then '' else v_one.name || '_' end;
            if v_free <= 0 then
                v_reason := v_prefix || 'limit_reached';
                v_is_used_up := true;
            elsif not v_is_used_up then
                v_reason := v_prefix || 'exceeds_remaining';
            end if;
            v_retry_at := greatest(v_retry_at, case
                when v_messages > v_one.renewed_limit then 'infinity' else coalesce(v_one.available_at, 'infinity')
            end);
        end if;
    end loop;

    v_answer."user" := p_user_id;
    v_answer.plan := v_plan.plan;
    v_answer.state := p_snapshot.state;
    v_answer.tier := case when v_has_access then headroom.tier_of(
        v_percent, v_plan.gentle_percent, v_plan.prominent_percent, v_plan.enforced
    ) else 'blocked' end;
    v_answer.display := case
        when v_answer.tier = 'blocked' then 'blocked'
        when v_is_trial then 'trial'
        when v_answer.tier = 'silent' and (v_plan.cycle <> 'lifetime' or p_snapshot."limit" is null) then 'hidden'
        else 'compact'
    end;
    v_answer.used := p_snapshot.used;
    v_answer.held := nullif(p_snapshot.held, 0);
    v_answer."limit" := p_snapshot."limit";
    v_answer.remaining := case
        when not v_has_access then 0
        when p_snapshot."limit" is not null then greatest(p_snapshot."limit" - (v_allowances[1]).taken, 0)
    end;
    v_answer.extra := nullif(v_extra, 0);
    if v_answer.extra > 0 then
        v_answer.extra_expires := headroom.instant_text(p_snapshot.extra_expires);
    end if;
    v_answer.period := p_snapshot.billing_period;
    if v_has_access and p_snapshot."limit" is not null then
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
    v_answer.window_limit := p_snapshot.window_limit;
    v_answer.window_used := p_snapshot.window_used;
    v_answer.window_remaining := case
        when p_snapshot.window_limit is null then null
        when v_has_access then greatest(p_snapshot.window_limit - (v_allowances[2]).taken, 0)
        else 0
    end;
    if v_has_access then
        v_answer.window_resets := headroom.instant_text(p_snapshot.window_ends_at);
    end if;
    foreach v_part in array coalesce(p_parts, '{}') loop
        continue when v_part.kind = 'fallback';
        -- Of a limit for the period and one for a window, the fuller one is shown; without either, only the count.
        v_one := headroom.fuller_allowance(v_allowances, v_part.kind);
        v_one.used := coalesce(v_one.used, v_part.used);
        v_free := case
            when v_one."limit" is null then null
            when v_has_access then greatest(v_one."limit" - v_one.taken, 0)
            else 0
        end;
        if v_part.kind = 'model' then
            v_answer.model := v_part.name;
            v_answer.model_limit := v_one."limit";
            v_answer.model_used := v_one.used;
            v_answer.model_remaining := v_free;
            v_answer.model_resets := case when v_has_access then headroom.instant_text(v_one.resets_at) end;
        else
            v_answer.member := v_part.name;
            v_answer.member_limit := v_one."limit";
            v_answer.member_used := v_one.used;
            v_answer.member_remaining := v_free;
        end if;
    end loop;

    if p_snapshot.messages > 0 then
        v_answer.crossed := nullif(v_answer.tier, headroom.tier_of(
            v_percent_before, v_plan.gentle_percent, v_plan.prominent_percent, v_plan.enforced
        ));
        v_answer.shadow := nullif(v_is_over, false);
    elsif not v_has_access then
        v_answer.reason := p_snapshot.denial_reason;
    elsif v_plan.enforced and v_plan.cycle = 'lifetime' and p_snapshot."limit" = 0 then
        v_answer.reason := 'no_subscription';
    -- A request that only reads has a reason only if the user has no access.
    elsif p_messages > 0 and v_reason is not null and not v_plan.enforced then
        v_answer.shadow := true;
    elsif p_messages > 0 and v_reason is not null then
        v_answer.reason := case when v_is_trial and v_reason = 'limit_reached' then 'trial_' else '' end || v_reason;
        v_answer.retry_after := ceil(extract(epoch from nullif(v_retry_at, 'infinity') - p_snapshot.observed_at));
        v_answer.fallback := headroom.fallback_model(p_snapshot, p_parts, p_messages);
    end if;
    v_answer.status := case
        when p_messages = 0 then 'OK' when v_answer.reason is null then 'ALLOWED' else 'BLOCKED'
    end;
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
