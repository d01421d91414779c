-- What a user may do at an instant, derived from the inputs in headroom.subscribers, subscriptions and plans.

-- Periods -------------------------------------------------------------------------------------------------------------

-- None of these is STRICT: that would keep the planner from inlining them.

-- The instant at which the monthly period that begins in a month begins; p_month is that month's first day. An anchor
-- day that the month lacks is clamped to its last.
create function headroom.cycle_start(p_month date, p_anchor_day integer) returns timestamptz
    language sql immutable parallel safe
    return (p_month + case
        when p_anchor_day <= 28 then p_anchor_day - 1
        else least(p_anchor_day, extract(day from p_month + interval '1 month - 1 day')::integer) - 1
    end)::timestamp at time zone 'UTC';

create function headroom.first_of_month(p_day date) returns date
    language sql immutable parallel safe
    return p_day - (extract(day from p_day)::integer - 1);

-- The month (its first day) in which the period that holds p_at began: this one, or the one before until the anchor day.
create function headroom.cycle_month(p_at timestamptz, p_anchor_day integer) returns date
    language sql immutable parallel safe
    return case
        when p_anchor_day = 1
            or p_at >= headroom.cycle_start(headroom.first_of_month((p_at at time zone 'UTC')::date), p_anchor_day)
            then headroom.first_of_month((p_at at time zone 'UTC')::date)
        else (headroom.first_of_month((p_at at time zone 'UTC')::date) - interval '1 month')::date
    end;

create function headroom.month_label(p_month date) returns text
    language sql stable parallel safe
    return pg_catalog.to_char(p_month, 'YYYY-MM');

create function headroom.is_month(p_label text) returns boolean
    language sql immutable parallel safe
    return p_label ~ '^[0-9]{4}-(0[1-9]|1[0-2])$';

-- Terms ---------------------------------------------------------------------------------------------------------------

-- What a user may do, and until when that answer holds by itself.
create type headroom.terms as (
    is_known boolean,
    plan text,
    cycle text,
    state text,
    lapse text,
    billing_period text,
    allowance integer,
    started_at timestamptz,
    resets_at timestamptz,
    expires_at timestamptz,
    previous_plan text,
    usable_until timestamptz,
    plan_revision integer
);

-- Derives a user's terms at p_at. p_unknown_users says what becomes of a user without a subscription: trial, free or
-- deny.
--
-- Procedural, with scalars and few statements, because each user whose row cannot be used passes here: as one query it
-- took ten times as long to plan as to run, and with the states as nested expressions twice as long as this.
create function headroom.terms_of(p_user_id uuid, p_at timestamptz, p_unknown_users text) returns headroom.terms
    language plpgsql stable
as $$
declare
    v_subscriber headroom.subscribers;
    v_held record;
    v_terms headroom.terms;
    v_state text;
    v_lapse text;
    v_ends_at timestamptz;
    v_rank integer;
    v_best_rank integer;
    v_changes_at timestamptz := 'infinity';
    v_month date;
    v_anchor_day integer;
begin
    select * into v_subscriber from headroom.subscribers where user_id = p_user_id;
    v_terms.previous_plan := v_subscriber.previous_plan;

    -- A plan and the revision of plans come out of one statement, so of one snapshot: terms from before an edit of the
    -- plan never carry the revision from after it.
    for v_held in
        select
            true as is_known, plans.plan, plans.cycle, plans.allowance, plans.trial_days, revised.revision,
            subscription.started_at, subscription.expires_at, subscription.grace_until, subscription.billing_issue_at,
            subscription.unsubscribed_at, subscription.revoked_at
        from headroom.subscriptions as subscription
        join headroom.plans as plans on plans.plan = subscription.plan
        cross join headroom.plan_revision as revised
        where subscription.user_id = p_user_id
        union all
        -- Nobody told us about this user: a trial that starts now, the free plan, or nothing.
        select
            false, plans.plan, plans.cycle, plans.allowance, plans.trial_days, revised.revision,
            coalesce(v_subscriber.trial_started_at, p_at), null, null, null, null, null
        from headroom.plans as plans
        cross join headroom.plan_revision as revised
        where plans.plan = case p_unknown_users when 'trial' then 'trial' else 'free' end
            and not exists (select from headroom.subscriptions where user_id = p_user_id)
    loop
        -- Several states may hold: revoked comes first, then a billing issue, then cancelled, then active. Intervals
        -- are half-open: at expires_at itself access is over.
        v_lapse := null;
        v_ends_at := v_held.expires_at;
        if v_held.cycle = 'trial' then
            v_ends_at := coalesce(v_ends_at, v_held.started_at + make_interval(hours => 24 * v_held.trial_days));
        elsif v_held.billing_issue_at is not null then
            -- The store's date counts; 16 days after expiry where it gives none.
            v_ends_at := greatest(v_ends_at, coalesce(v_held.grace_until, v_ends_at + interval '16 days'));
        end if;
        if v_held.revoked_at <= p_at then
            v_state := 'revoked';
            v_lapse := 'revoked';
        elsif v_held.cycle = 'trial' then
            v_state := 'trial';
            if p_at >= v_ends_at then
                v_lapse := 'trial_ended';
                -- Somebody ended it; it did not run out.
                if v_held.unsubscribed_at is not null then
                    v_state := 'expired';
                    v_lapse := 'expired';
                end if;
            end if;
        elsif v_held.billing_issue_at is not null then
            if p_at < v_ends_at then
                v_state := 'grace_period';
            else
                v_state := 'billing_retry';
                v_lapse := 'billing_retry';
            end if;
        elsif v_held.expires_at <= p_at then
            v_state := 'expired';
            v_lapse := 'expired';
        elsif v_held.cycle = 'lifetime' then
            v_state := 'free';
            if not v_held.is_known and p_unknown_users = 'deny' then
                v_lapse := 'no_subscription';
            end if;
        elsif v_held.unsubscribed_at is not null then
            v_state := 'cancelled';
        else
            v_state := 'active';
        end if;
        -- Any of a user's subscriptions that changes may change which of them counts.
        if v_ends_at > p_at then
            v_changes_at := least(v_changes_at, v_ends_at);
        end if;
        if v_held.revoked_at > p_at then
            v_changes_at := least(v_changes_at, v_held.revoked_at);
        end if;

        -- Access over any of the user's subscriptions: who holds two products and loses one keeps the other. A trial
        -- counts only when there is nothing else, or a refund would bring it back.
        v_rank := case v_held.cycle when 'trial' then 200 when 'lifetime' then 10 else 0 end
            + case when v_lapse is not null then 100 else 0 end
            + case v_state
                when 'revoked' then 0 when 'billing_retry' then 1 when 'grace_period' then 1 when 'cancelled' then 2
                else 3
            end;
        if v_best_rank is null or v_rank < v_best_rank
            or (v_rank = v_best_rank
                and coalesce(v_held.allowance, 2147483647) > coalesce(v_terms.allowance, 2147483647)) then
            v_best_rank := v_rank;
            v_terms.is_known := v_held.is_known;
            v_terms.plan := v_held.plan;
            v_terms.cycle := v_held.cycle;
            v_terms.state := v_state;
            v_terms.lapse := v_lapse;
            v_terms.allowance := case v_lapse when 'no_subscription' then 0 else v_held.allowance end;
            v_terms.started_at := v_held.started_at;
            v_terms.expires_at := v_ends_at;
            v_terms.plan_revision := v_held.revision;
        end if;
    end loop;

    if v_terms.plan is null then
        raise exception 'headroom.plans has no plan named %, which users without a subscription are on',
            case p_unknown_users when 'trial' then 'trial' else 'free' end
            using hint = 'Insert it, or start the service with another --unknown-users.';
    end if;
    v_terms.usable_until := v_changes_at;
    if v_terms.cycle <> 'monthly' then
        v_terms.billing_period := v_terms.plan;
        v_terms.started_at := coalesce(v_terms.started_at, p_at);
        return v_terms;
    end if;
    v_anchor_day := coalesce(v_subscriber.anchor_day, 1);
    v_month := headroom.cycle_month(p_at, v_anchor_day);
    -- A period never goes back: when a later anchor day, or a clock set back, would name the month before one that
    -- already has a row, that row's month stays.
    if exists (
        select from public.message_usage as usage
        where usage.user_id = p_user_id
            and usage.billing_period = headroom.month_label((v_month + interval '1 month')::date)
    ) then
        v_month := (v_month + interval '1 month')::date;
    end if;
    v_terms.billing_period := headroom.month_label(v_month);
    v_terms.started_at := headroom.cycle_start(v_month, v_anchor_day);
    v_terms.resets_at := headroom.cycle_start((v_month + interval '1 month')::date, v_anchor_day);
    v_terms.usable_until := least(v_changes_at, v_terms.resets_at);
    if v_terms.lapse is not null then
        v_terms.previous_plan := v_terms.plan;
    end if;
    return v_terms;
end
$$;
