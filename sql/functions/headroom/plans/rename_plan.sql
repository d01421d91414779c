-- Trigger function: replaces the name of a renamed plan wherever it is stored: in subscribers and subscriptions, as the
-- plan and as the billing period of usage rows and their parts, keys, grants, purchases and notifications, in spent
-- trials, and in recorded events. The period of a plan that never resets has the plan's name, so without this everybody
-- on the plan would begin anew.
--
-- Foreign keys do the same in the mappings of products and in the plan's limits. The audit log keeps the old name, and
-- has one row for the renaming, beside those of mappings and limits. Locks the subscribers, then the usage rows in the
-- order of user_id, then their parts and keys.
create or replace function headroom.rename_plan() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    -- One version serves all rows, because it only has to be new for each row.
    v_version constant bigint := nextval('headroom.entitlement_versions');
begin
    if headroom.is_distributed() then
        raise exception 'a plan cannot be renamed in a distributed database' using
            errcode = 'feature_not_supported', hint = 'Change its label, which is what users see.';
    elsif old.plan in ('trial', 'free') then
        raise exception 'plan % cannot be renamed: users without a subscription are on it', old.plan
            using errcode = 'invalid_parameter_value', hint = 'Change its label, which is what users see.';
    elsif exists (select from public.message_usage where billing_period = new.plan)
        or exists (select from headroom.message_keys where billing_period = new.plan)
        or exists (select from headroom.grants where billing_period = new.plan)
        or exists (select from headroom.message_purchases where billing_period = new.plan)
        or exists (select from headroom.spent_trials where plan = new.plan)
        or exists (select from headroom.notifications where new.plan in (plan, billing_period)) then
        -- There was an earlier plan of that name, or rows were inserted by hand. Their counts are not those of this
        -- plan.
        raise exception 'plan % cannot be renamed to %: there is usage in a period of that name', old.plan, new.plan
            using errcode = 'invalid_parameter_value', hint = 'Choose a name that no plan had before, or change the '
                'label, which is what users see.';
    end if;
    update headroom.subscribers
    set previous_plan = case previous_plan when old.plan then new.plan else previous_plan end,
        operator_previous_plan = case operator_previous_plan when old.plan then new.plan else operator_previous_plan end
    where old.plan in (previous_plan, operator_previous_plan);
    update headroom.subscriptions
    set plan = case plan when old.plan then new.plan else plan end,
        next_plan = case next_plan when old.plan then new.plan else next_plan end
    where old.plan in (plan, next_plan);
    perform from public.message_usage as usage
    where old.plan in (usage.billing_period, usage.plan, usage.previous_plan)
    order by usage.user_id, usage.billing_period for update;
    update public.message_usage as usage
    set billing_period = case usage.billing_period when old.plan then new.plan else usage.billing_period end,
        plan = case usage.plan when old.plan then new.plan else usage.plan end,
        previous_plan = case usage.previous_plan when old.plan then new.plan else usage.previous_plan end,
        -- The trigger that does this would write each row once more.
        entitlement_version = v_version
    where old.plan in (usage.billing_period, usage.plan, usage.previous_plan);
    update headroom.usage_parts set billing_period = new.plan where billing_period = old.plan;
    update headroom.message_keys set billing_period = new.plan where billing_period = old.plan;
    update headroom.grants set billing_period = new.plan where billing_period = old.plan;
    update headroom.message_purchases set billing_period = new.plan where billing_period = old.plan;
    update headroom.spent_trials set plan = new.plan where plan = old.plan;
    -- The bodies of notifications keep the old name, because they are the same in each attempt.
    update headroom.notifications
    set billing_period = case billing_period when old.plan then new.plan else billing_period end,
        plan = case plan when old.plan then new.plan else plan end
    where old.plan in (plan, billing_period);
    -- The payload of a direct event, which has a kind, names the plan itself, and a replay reads it again.
    update headroom.billing_events as events
    set effects = (
            select jsonb_agg(
                effects.value || coalesce((
                    select jsonb_object_agg(named.field, new.plan)
                    from jsonb_each_text(effects.value) as named (field, plan)
                    where named.field in ('plan', 'regular_plan', 'next_plan') and named.plan = old.plan
                ), '{}')
                order by effects.position
            )
            from jsonb_array_elements(events.effects) with ordinality as effects (value, position)
        ),
        payload = case
            when events.payload ? 'kind' then events.payload
                || case events.payload ->> 'plan' when old.plan then jsonb_build_object('plan', new.plan) else '{}' end
                || case events.payload ->> 'next_plan'
                    when old.plan then jsonb_build_object('next_plan', new.plan)
                    else '{}'
                end
            else events.payload
        end
    where events.effects::text like '%"' || replace(old.plan, '_', '\_') || '"%';
    return null;
end
$$;
