-- Raises HR006 and names the value from which a user's terms cannot be derived. headroom.terms_of calls it when it has met
-- one; only such users pay for finding out which.
create or replace function headroom.refuse_terms(p_user_id uuid, p_plan text) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_found record;
begin
    select * into v_found
    from (
        select
            'headroom.subscribers' as of_table, instants.name, 'headroom.is_instant(%I)' as condition,
            instants.at::text as value
        from headroom.subscribers as subscriber
        cross join lateral (values
            ('trial_started_at', subscriber.trial_started_at), ('trial_ends_at', subscriber.trial_ends_at)
        ) as instants (name, at)
        where subscriber.user_id = p_user_id and not headroom.is_instant(instants.at)
        union all
        select 'headroom.subscribers', 'anchor_day', '%I between 1 and 31', subscriber.anchor_day::text
        from headroom.subscribers as subscriber
        where subscriber.user_id = p_user_id and subscriber.anchor_day not between 1 and 31
        union all
        select 'headroom.subscriptions', instants.name, 'headroom.is_instant(%I)', instants.at::text
        from headroom.subscriptions as subscription
        cross join lateral (values
            ('started_at', subscription.started_at), ('expires_at', subscription.expires_at),
            ('grace_until', subscription.grace_until), ('billing_issue_at', subscription.billing_issue_at),
            ('unsubscribed_at', subscription.unsubscribed_at), ('revoked_at', subscription.revoked_at)
        ) as instants (name, at)
        where subscription.user_id = p_user_id and not headroom.is_instant(instants.at)
        union all
        select 'headroom.plans', numbers.name, 'headroom.is_plan(plans)', numbers.value::text
        from headroom.plans as plans
        cross join lateral (values
            ('allowance', plans.allowance, coalesce(plans.allowance, 0) >= 0),
            ('trial_days', plans.trial_days, plans.cycle <> 'trial' or plans.trial_days between 1 and 3650),
            ('gentle_percent', plans.gentle_percent, plans.gentle_percent between 0 and 100),
            ('prominent_percent', plans.prominent_percent, plans.prominent_percent between 0 and 100)
        ) as numbers (name, value, is_valid)
        where plans.plan = p_plan and numbers.is_valid is not true
        union all
        select 'headroom.spent_trials', 'messages, trial_started_at or trial_ends_at',
            'messages >= 0 and headroom.is_instant(trial_started_at) and headroom.is_instant(trial_ends_at)', null
    ) as found
    limit 1;
    perform headroom.refuse_value(
        v_found.of_table, v_found.name, format(v_found.condition, v_found.name), v_found.value
    );
end
$$;
revoke all on function headroom.refuse_terms(uuid, text) from public;
grant execute on function headroom.refuse_terms(uuid, text) to headroom_service;
