-- Returns what a user may send at p_at. p_unknown_users_policy: trial, free or deny, for users without a subscription.
-- Of several subscriptions, the one with the largest allowance applies. A cancelled trial still ends as a trial.
--
-- Written in PL/pgSQL with scalars and few statements, because every user whose row is outdated needs it: one query
-- took ten times as long to plan as to execute, and nested expressions for the state took twice as long as this.
create or replace function headroom.entitlement(
    p_user_id uuid, p_at timestamptz, p_unknown_users_policy text
) returns headroom.entitlement
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_subscriber headroom.subscribers;
    v_row record;
    v_result headroom.entitlement;
    v_state text;
    v_reason text;
    v_ends_at timestamptz;
    v_rank bigint;
    v_best_rank bigint;
    v_best_transaction_id text;
    v_paid_until timestamptz;
    v_next_change_at timestamptz := 'infinity';
    -- Rows that are dated later were written while the clock was ahead.
    v_latest constant timestamptz := p_at + interval '1 hour';
    v_month date;
    v_next_month text;
    v_stays boolean;
    v_later_messages bigint;
    v_anchor_day integer;
    v_trial_started_at timestamptz;
    v_trial_ends_at timestamptz;
begin
    select * into v_subscriber from headroom.subscribers
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id;
    v_result.previous_plan := v_subscriber.previous_plan;
    v_trial_started_at := least(v_subscriber.trial_started_at, v_subscriber.store_trial_started_at);
    v_trial_ends_at := v_subscriber.trial_ends_at;
    if v_subscriber.user_id is null and p_unknown_users_policy = 'trial' then
        select
            min(spent.trial_started_at), min(spent.trial_ends_at),
            sum(spent.messages) filter (where spent.plan = 'trial')
        into v_trial_started_at, v_trial_ends_at, v_result.spent_messages
        from headroom.spent_trials as spent
        where spent.bucket = headroom.bucket_of(p_user_id) and spent.digest = (
            select headroom.keyed_digest(p_user_id, secrets.inner_key, secrets.outer_key)
            from headroom.secrets where secrets.name = 'spent trials'
        );
    end if;
    if not (headroom.is_instant(v_trial_started_at) and headroom.is_instant(v_trial_ends_at))
        or v_subscriber.anchor_day not between 1 and 31 or v_result.spent_messages < 0 then
        perform headroom.raise_invalid_row('headroom.subscribers', to_jsonb(v_subscriber)),
            headroom.raise_invalid_row('headroom.spent_trials', jsonb_build_object(
                'messages', v_result.spent_messages,
                'trial_started_at', v_trial_started_at, 'trial_ends_at', v_trial_ends_at
            ));
    end if;

    -- One statement reads the plan and the revision of plans, so both come from the same snapshot: an entitlement from
    -- before an edit of the plan never has the revision from after it.
    for v_row in
        select
            subscription.user_id is not null as has_subscription, subscription.original_transaction_id, plans.plan,
            plans.cycle, plans.allowance, plans.trial_days, plans.gentle_percent, plans.prominent_percent,
            revised.revision, subscription.grace_until, subscription.billing_issue_at, subscription.unsubscribed_at,
            subscription.revoked_at,
            subscription.renews as is_renewable,
            case
                when subscription.user_id is null then coalesce(v_trial_started_at, p_at)
                when subscription.original_transaction_id = 'first message' and subscription.started_at > v_latest
                    -- Else an operator has set that start.
                    and exists (
                        select from public.message_usage as usage
                        where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
                            and usage.billing_period = subscription.plan and usage.updated_at > v_latest
                    )
                    then p_at
                else subscription.started_at
            end as started_at,
            case when subscription.user_id is null and plans.cycle = 'trial' then v_trial_ends_at
                else subscription.expires_at end as expires_at
        from headroom.plan_revision as revised
        left join headroom.subscriptions as subscription
            on subscription.bucket = headroom.bucket_of(p_user_id) and subscription.user_id = p_user_id
        -- Without a subscription: a trial that starts now, the free plan, or nothing.
        join headroom.plans as plans on plans.plan
            = coalesce(subscription.plan, case p_unknown_users_policy when 'trial' then 'trial' else 'free' end)
    loop
        if not (headroom.is_instant(v_row.started_at) and headroom.is_instant(v_row.expires_at)
            and headroom.is_instant(v_row.grace_until) and headroom.is_instant(v_row.billing_issue_at)
            and headroom.is_instant(v_row.unsubscribed_at) and headroom.is_instant(v_row.revoked_at))
            or coalesce(v_row.allowance, 0) < 0
            or v_row.cycle = 'trial' and coalesce(v_row.trial_days, 0) not between 1 and 3650
            or least(v_row.gentle_percent, v_row.prominent_percent) < 0
            or greatest(v_row.gentle_percent, v_row.prominent_percent) > 100 then
            perform headroom.raise_invalid_row('headroom.subscriptions', to_jsonb(v_row)),
                headroom.raise_invalid_row('headroom.plans', to_jsonb(v_row));
        end if;
        -- Of several states the first one applies: revoked, billing issue, cancelled, active. Intervals are half-open:
        -- at expires_at access has ended.
        v_reason := null;
        v_ends_at := v_row.expires_at;
        if v_row.cycle = 'trial' then
            v_ends_at := coalesce(v_ends_at, v_row.started_at + make_interval(hours => 24 * v_row.trial_days));
        elsif v_row.billing_issue_at is not null then
            -- The date of the store, or 16 days after expiry if the store gives none.
            v_ends_at := greatest(v_ends_at, coalesce(v_row.grace_until, v_ends_at + interval '16 days'));
        end if;
        -- The sum may be later than the last valid instant.
        v_ends_at := case when v_ends_at is not null then least(v_ends_at, '9999-12-31T23:59:59.999999Z') end;
        if v_row.revoked_at <= p_at then
            v_state := 'revoked';
        elsif v_row.cycle = 'trial' then
            v_reason := case when p_at >= v_ends_at then 'trial_ended' end;
            -- A trial that was ended is expired; one that has run out, or was cancelled before its end, is still a
            -- trial.
            v_state := case
                when p_at >= v_ends_at and v_row.unsubscribed_at >= v_ends_at then 'expired' else 'trial'
            end;
        elsif v_row.billing_issue_at is not null then
            v_state := case when p_at < v_ends_at then 'grace_period' else 'billing_retry' end;
        elsif v_row.expires_at <= p_at then
            v_state := 'expired';
        elsif v_row.cycle = 'lifetime' then
            v_state := 'free';
            v_reason := case
                when not v_row.has_subscription and p_unknown_users_policy = 'deny' then 'no_subscription'
            end;
        elsif v_row.unsubscribed_at is not null then
            v_state := 'cancelled';
        else
            v_state := 'active';
        end if;
        if v_state in ('revoked', 'expired', 'billing_retry') then
            v_reason := v_state;
        end if;
        -- A change of any subscription may change which of them applies.
        v_next_change_at := least(
            v_next_change_at, case when v_ends_at > p_at then v_ends_at end,
            case when v_row.revoked_at > p_at then v_row.revoked_at end
        );

        v_paid_until := null;
        if v_row.has_subscription and v_row.cycle = 'trial' and v_reason is null then
            -- The end of access by the subscriptions that were bought.
            select max(least(bought.revoked_at, greatest(bought.expires_at, bought.grace_until), 'infinity'))
            into v_paid_until
            from headroom.subscriptions as bought
            join headroom.plans as plans on plans.plan = bought.plan and plans.cycle <> 'trial' and plans.plan <> 'free'
            where bought.bucket = headroom.bucket_of(p_user_id) and bought.user_id = p_user_id;
        end if;
        -- With access, the largest allowance applies, so that buying more never gives less. Of equal ones, and without
        -- access, a refund comes first, then a billing issue, then a cancellation. A trial applies only if nothing that
        -- was bought before it still gives access. The free plan comes last.
        v_rank := 100000000000 * case
                when v_row.plan = 'free' then 4
                when v_row.started_at >= v_paid_until then 0
                when v_row.cycle = 'trial' then 2 + (v_reason is not null)::integer
                else (v_reason is not null)::integer
            end
            + case
                when v_reason is null then 10 * (2147483647 - coalesce(v_row.allowance, 2147483647))::bigint
                else 0
            end
            + case v_state
                when 'revoked' then 0 when 'billing_retry' then 1 when 'grace_period' then 1 when 'cancelled' then 2
                when 'free' then 4 else 3
            end;
        -- Of equal ranks, the one that ends last, so that the order of the rows does not matter.
        if v_best_rank is null or v_rank < v_best_rank
            or (v_rank = v_best_rank
                and (coalesce(v_ends_at, 'infinity'), v_row.original_transaction_id)
                    > (coalesce(v_result.expires_at, 'infinity'), v_best_transaction_id))
        then
            v_best_rank := v_rank;
            v_best_transaction_id := v_row.original_transaction_id;
            v_result.has_subscription := v_row.has_subscription;
            v_result.plan := v_row.plan;
            v_result.cycle := v_row.cycle;
            v_result.state := v_state;
            v_result.denial_reason := v_reason;
            v_result.allowance := case v_reason when 'no_subscription' then 0 else v_row.allowance end;
            v_result.started_at := v_row.started_at;
            v_result.expires_at := v_ends_at;
            v_result.renews := case
                when v_row.original_transaction_id not in ('operator', 'first message')
                    then v_row.unsubscribed_at is null and v_row.revoked_at is null and v_ends_at is not null
                        and coalesce(v_row.is_renewable, true)
            end;
            v_result.plan_revision := v_row.revision;
        end if;
    end loop;

    if v_result.plan is null then
        raise exception 'headroom.plans has no plan named %, which users without a subscription are on',
            case p_unknown_users_policy when 'trial' then 'trial' else 'free' end
            using hint = 'Insert it, or start the service with another --unknown-users.';
    end if;
    v_result.usable_until := v_next_change_at;
    if v_result.cycle <> 'monthly' then
        v_result.billing_period := v_result.plan;
        v_result.started_at := coalesce(v_result.started_at, p_at);
        return v_result;
    end if;
    v_anchor_day := coalesce(v_subscriber.anchor_day, 1);
    v_month := headroom.cycle_month(p_at, v_anchor_day);
    v_next_month := headroom.month_label((v_month + interval '1 month')::date);
    -- A later anchor day, or a clock that was set back, would name the month before the month of a used row. The used
    -- row's month stays. The messages of later months were counted while the clock was ahead, and count in the open
    -- one: headroom.correct_clock_jump.
    select
        bool_or(case when usage.billing_period = v_next_month then not headroom.is_unused_usage_row(
            usage.user_id, usage.billing_period, usage.message_count, usage.held, usage.released, usage.granted,
            usage.plan, usage.plan_limit, usage."limit"
        ) end),
        sum(usage.message_count) filter (
            where usage.billing_period > v_next_month and usage.updated_at > v_latest
                and headroom.is_month(usage.billing_period)
        )
    into v_stays, v_later_messages
    from public.message_usage as usage
    where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
        and usage.billing_period > headroom.month_label(v_month);
    v_result.spent_messages := case when v_later_messages is not null then least(v_later_messages, 2147483647) end;
    if v_stays then
        v_month := (v_month + interval '1 month')::date;
    end if;
    v_result.billing_period := headroom.month_label(v_month);
    v_result.started_at := headroom.cycle_start(v_month, v_anchor_day);
    v_result.resets_at := headroom.cycle_start((v_month + interval '1 month')::date, v_anchor_day);
    v_result.usable_until := least(v_next_change_at, v_result.resets_at);
    if v_result.denial_reason is not null then
        v_result.previous_plan := v_result.plan;
    end if;
    return v_result;
end
$$;
