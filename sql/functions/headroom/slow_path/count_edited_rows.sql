-- Counts messages in usage rows that only an edit of the plan has made unusable, and writes the plan's allowance into
-- them. Returns the rows in which messages were counted.
--
-- An edit changes nothing else for a user with one subscription whose row has the dates that follow from the plan's
-- cycle: those of a month, none, or those of a trial of as many days. Other users are left out, and those whose
-- requests have to be decided one by one (headroom.derive_and_count). p_known: the users, whose subscribers are locked.
-- p_users, p_messages: the messages of each user. p_periods: only in these periods. p_revision: that of the plans.
create or replace function headroom.count_edited_rows(
    p_bucket smallint, p_known uuid[], p_users uuid[], p_messages bigint[], p_periods text[], p_revision integer,
    p_at timestamptz
) returns table (user_id uuid, billing_period text, message_count integer)
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_known uuid[];
    v_plans text[];
    v_allowances integer[];
    v_cycles text[];
    v_trials interval[];
    v_latest constant timestamptz := p_at + interval '1 hour';
    v_version constant bigint := nextval('headroom.entitlement_versions');
begin
    v_known := array(
        select subscription.user_id from headroom.subscriptions as subscription
        where subscription.bucket = p_bucket and subscription.user_id = any(p_known)
        group by subscription.user_id
        having count(*) = 1
    );
    select
        array_agg(plans.plan), array_agg(plans.allowance), array_agg(plans.cycle),
        array_agg(make_interval(hours => 24 * plans.trial_days))
    into v_plans, v_allowances, v_cycles, v_trials
    from headroom.plans as plans
    where plans.enforced and plans.window_messages is null;
    return query
    update public.message_usage as usage
    set message_count = usage.message_count + p_messages[width_bucket(usage.user_id, p_users)], updated_at = p_at,
        "limit" = headroom.effective_limit(
            usage.plan, usage.plan_limit, usage."limit", usage.granted,
            v_allowances[array_position(v_plans, usage.plan)]
        ),
        plan_limit = greatest(v_allowances[array_position(v_plans, usage.plan)]), plan_revision = p_revision,
        entitlement_version = v_version
    where usage.bucket = p_bucket and usage.user_id = any(v_known) and usage.billing_period = any(p_periods)
        and usage.plan_revision < p_revision and usage.usable_until > p_at and usage.updated_at <= v_latest
        and usage.held = 0 and usage.window_limit is null and usage.enforced is null and usage.extra is null
        -- This is no CASE, which Citus would send in a form that compares a text with a boolean.
        and (
            v_cycles[array_position(v_plans, usage.plan)] = 'monthly' and usage.state = 'active'
            and usage.resets_at > p_at and length(usage.billing_period) = 7
            or v_cycles[array_position(v_plans, usage.plan)] = 'lifetime' and usage.state = 'free'
            and usage.billing_period = usage.plan
            or v_cycles[array_position(v_plans, usage.plan)] = 'trial' and usage.state = 'trial'
            and usage.billing_period = usage.plan
            and usage.expires_at - usage.started_at = v_trials[array_position(v_plans, usage.plan)]
        )
        and usage.message_count + p_messages[width_bucket(usage.user_id, p_users)] <= coalesce(
            headroom.effective_limit(
                usage.plan, usage.plan_limit, usage."limit", usage.granted,
                v_allowances[array_position(v_plans, usage.plan)]
            ),
            2147483647
        )
        and headroom.is_valid_usage_row(
            usage.message_count, usage.held, usage.released, usage.granted, usage."limit", usage.plan_limit,
            usage.updated_at, usage.started_at, usage.resets_at, usage.expires_at,
            usage.window_count, usage.window_held, usage.window_limit
        )
    returning usage.user_id, usage.billing_period, usage.message_count;
end
$$;
