-- What operators in psql, dashboards and PostgREST/Supabase clients call. All of it works while the service runs, and
-- the service's next answer sees it.

-- How close a user is: exact integer arithmetic, as in the service.
create function headroom.tier_of(
    p_used bigint, p_limit bigint, p_gentle_percent integer, p_prominent_percent integer
) returns text
    language sql immutable parallel safe
    return case
        when p_limit is null then 'silent'
        when p_used >= p_limit then 'blocked'
        when p_used * 100 >= p_limit * coalesce(p_prominent_percent, 95) then 'prominent'
        when p_used * 100 >= p_limit * coalesce(p_gentle_percent, 80) then 'gentle'
        else 'silent'
    end;

create view public.monthly_usage as
select
    usage.user_id,
    usage.billing_period,
    usage.plan,
    usage.state,
    usage.message_count as used,
    holds.held,
    usage."limit",
    greatest(usage."limit"::bigint - usage.message_count - holds.held, 0)::integer as remaining,
    headroom.tier_of(
        usage.message_count::bigint + holds.held, usage."limit", plans.gentle_percent, plans.prominent_percent
    ) as tier,
    usage.resets_at,
    usage.expires_at,
    usage.updated_at
from public.message_usage as usage
cross join lateral (select headroom.held_now(usage) as held) as holds
left join headroom.plans as plans on plans.plan = usage.plan;
comment on view public.monthly_usage is
    'A row per user and billing period. state is as of the row''s last message; "limit" null is unlimited.';

-- Answers -------------------------------------------------------------------------------------------------------------

-- The fields of an answer line of the protocol, in its order. "limit" and remaining are null when unlimited.
create type headroom.answer as (
    status text,
    "user" uuid,
    plan text,
    state text,
    tier text,
    display text,
    used integer,
    held integer,
    "limit" integer,
    remaining integer,
    period text,
    resets timestamptz,
    expires timestamptz,
    day integer,
    days integer,
    crossed text,
    reason text,
    retry_after bigint,
    previous_plan text,
    label text,
    accessible text,
    notice text,
    banner text
);

-- What to do with users nobody told us about. The service sets it for its own connections from its setting; for psql
-- and PostgREST: alter database … set headroom.unknown_users = 'deny'.
create function headroom.unknown_users() returns text
    language plpgsql stable set search_path = pg_catalog
as $$
declare
    v_setting constant text := coalesce(nullif(current_setting('headroom.unknown_users', true), ''), 'trial');
begin
    if v_setting not in ('trial', 'free', 'deny') then
        raise exception 'headroom.unknown_users is %, not trial, free or deny', quote_literal(v_setting)
            using errcode = 'invalid_parameter_value';
    end if;
    return v_setting;
end
$$;

-- One of the sentences of headroom.words with its blanks filled in.
create function headroom.words(
    p_name text, p_used bigint, p_limit bigint, p_remaining bigint, p_date timestamptz, p_label text, p_day integer,
    p_days integer
) returns text
    language sql stable
begin atomic
    select
        replace(replace(replace(replace(replace(replace(replace(
            template,
            '{used}', p_used::text),
            '{limit}', coalesce(p_limit::text, 'unlimited')),
            '{remaining}', coalesce(p_remaining::text, 'unlimited')),
            '{date}', coalesce(to_char(p_date at time zone 'UTC', 'FMMonth FMDD'), '')),
            '{label}', coalesce(p_label, '')),
            '{day}', coalesce(p_day::text, '')),
            '{days}', coalesce(p_days::text, ''))
    from headroom.words
    where name = p_name;
end;

-- Words an answer to a request for p_messages (0 for a reading) whose standing after it is p_standing.
create function headroom.answer_to(
    p_user_id uuid, p_standing headroom.standing, p_messages integer
) returns headroom.answer
    language sql stable
begin atomic
    with numbers as (
        select
            (p_standing).used::bigint as used,
            (p_standing).held::bigint as held,
            (p_standing)."limit"::bigint as "limit",
            (p_standing).lapse,
            plans,
            greatest(1, least(plans.trial_days, 1 + floor(
                extract(epoch from (p_standing).observed_at - (p_standing).started_at) / 86400
            )::integer)) as day
        from headroom.plans as plans
        where plans.plan = (p_standing).plan
    ),
    tiers as (
        select
            numbers.*,
            case when lapse is not null then 'blocked' else headroom.tier_of(
                used + held, "limit", (plans).gentle_percent, (plans).prominent_percent
            ) end as tier,
            headroom.tier_of(
                used + held - (p_standing).messages, "limit", (plans).gentle_percent, (plans).prominent_percent
            ) as tier_before,
            case
                when lapse is not null then 0
                when "limit" is not null then greatest("limit" - used - held, 0)
            end as remaining,
            case
                when p_messages = 0 or (p_standing).messages > 0 then null
                when lapse is not null then lapse
                when (plans).cycle = 'trial' then 'trial_limit_reached'
                when (plans).cycle = 'lifetime' and "limit" = 0 then 'no_subscription'
                else 'limit_reached'
            end as reason,
            (plans).cycle = 'trial' as is_trial
        from numbers
    )
    select row(
        case when p_messages = 0 then 'OK' when reason is null then 'ALLOWED' else 'BLOCKED' end,
        p_user_id,
        (plans).plan,
        (p_standing).state,
        tier,
        case
            when tier = 'blocked' then 'blocked'
            when is_trial then 'trial'
            when tier = 'silent' then 'hidden'
            else 'compact'
        end,
        used::integer,
        nullif(held, 0)::integer,
        "limit"::integer,
        remaining::integer,
        (p_standing).billing_period,
        case when lapse is null and "limit" is not null then (p_standing).resets_at end,
        case when is_trial or (p_standing).state = 'cancelled' then (p_standing).expires_at end,
        case when is_trial then day end,
        case when is_trial then (plans).trial_days end,
        case when (p_standing).messages > 0 and tier <> tier_before then tier end,
        reason,
        case
            when reason = 'limit_reached' and (p_standing).resets_at > (p_standing).observed_at
                and p_messages <= coalesce((plans).allowance, p_messages)
                and ((p_standing).expires_at <= (p_standing).resets_at) is not true
                then ceil(extract(epoch from (p_standing).resets_at - (p_standing).observed_at))::bigint
        end,
        (p_standing).previous_plan,
        case
            when is_trial then headroom.words('label_trial', used, "limit", remaining, null, (plans).label, day, (plans).trial_days)
            else (plans).label
        end,
        headroom.words(
            case
                when is_trial then 'accessible_trial'
                when (plans).cycle = 'lifetime' then 'accessible_lifetime'
                when "limit" is null then 'accessible_monthly_unlimited'
                else 'accessible_monthly'
            end,
            used, "limit", remaining, null, null, null, null
        ),
        case
            -- A store can tell of the cancellation before it tells the date; without one the sentence has a hole.
            when (p_standing).state = 'cancelled' and (p_standing).expires_at is not null
                then headroom.words('cancelled', used, "limit", remaining, (p_standing).expires_at, null, null, null)
            when (p_standing).state in ('grace_period', 'billing_retry')
                then headroom.words('billing_issue', used, "limit", remaining, null, null, null, null)
        end,
        case
            when tier = 'blocked' and is_trial and (lapse is null or lapse = 'trial_ended')
                then headroom.words('blocked_trial', used, "limit", remaining, null, null, null, null)
            when tier = 'blocked' and lapse is null and (plans).cycle = 'monthly'
                then headroom.words('blocked_monthly', used, "limit", remaining, (p_standing).resets_at, null, null, null)
            when tier = 'blocked'
                then headroom.words('blocked_no_access', used, "limit", remaining, null, null, null, null)
            when is_trial then headroom.words('trial', used, "limit", remaining, null, null, null, null)
            when tier = 'prominent' and (p_standing).resets_at is not null
                then headroom.words('prominent', used, "limit", remaining, (p_standing).resets_at, null, null, null)
            when tier in ('gentle', 'prominent')
                then headroom.words('gentle', used, "limit", remaining, null, null, null, null)
        end
    )::headroom.answer
    from tiers;
end;

-- Counting ------------------------------------------------------------------------------------------------------------

-- Checks and counts in one step, with the user's own plan: what CONSUME does. One row with the fields of an answer.
create function public.increment_and_check_usage(p_user_id uuid, p_messages integer default 1) returns headroom.answer
    language plpgsql set search_path = pg_catalog
as $$
begin
    if p_user_id is null then
        raise exception 'p_user_id is null: pass the user''s uuid' using errcode = 'null_value_not_allowed';
    elsif p_messages is null or p_messages not between 1 and 1000000 then
        raise exception 'p_messages must be 1 to 1000000' using errcode = 'invalid_parameter_value';
    end if;
    return headroom.answer_to(
        p_user_id,
        (headroom.perform(
            p_user_id, array['consume'], array[p_messages], array[null::text], array[null::integer],
            headroom.unknown_users()
        ))[1],
        p_messages
    );
end
$$;

-- For callers that bring their own period and limit, from before there were plans here. p_limit null is unlimited. A
-- row that Headroom counts in under a plan keeps the plan's limit; p_limit then only decides about this message.
create function public.increment_and_check_usage(
    p_user_id uuid, p_billing_period text, p_limit integer
) returns jsonb
    language plpgsql set search_path = pg_catalog
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

-- Operators -----------------------------------------------------------------------------------------------------------

-- Sets a user's count to 0, in the current period or in the one named. Returns the user's usage now.
create function public.reset_usage(p_user_id uuid, p_billing_period text default null) returns headroom.answer
    language plpgsql set search_path = pg_catalog
as $$
declare
    v_period text := p_billing_period;
begin
    if p_user_id is null then
        raise exception 'p_user_id is null: pass the user''s uuid' using errcode = 'null_value_not_allowed';
    end if;
    if v_period is null then
        v_period := (headroom.peek(p_user_id, headroom.unknown_users())).billing_period;
    end if;
    update public.message_usage as usage
    set message_count = 0, updated_at = headroom.now()
    where usage.user_id = p_user_id and usage.billing_period = v_period;
    if not found and p_billing_period is not null then
        raise exception 'user % has no usage in period %', p_user_id, quote_literal(p_billing_period)
            using errcode = 'no_data_found', hint = 'select billing_period from message_usage where user_id = … lists the periods.';
    end if;
    return headroom.answer_to(p_user_id, headroom.peek(p_user_id, headroom.unknown_users()), 0);
end
$$;

-- Sets everybody's count in a period to 0 and says how many rows that were. Locks them in the order of user_id, as
-- every batch does, so that it cannot deadlock with the running service; messages of these users wait until it commits.
create function public.reset_billing_period(p_billing_period text) returns bigint
    language plpgsql set search_path = pg_catalog
as $$
declare
    v_rows bigint;
begin
    if p_billing_period is null
        or not (headroom.is_month(p_billing_period) or p_billing_period ~ '^[a-z][a-z0-9_]{0,31}$') then
        raise exception 'p_billing_period must be YYYY-MM, or a plan that never resets, such as trial'
            using errcode = 'invalid_parameter_value';
    end if;
    with locked as (
        select usage.user_id from public.message_usage as usage
        where usage.billing_period = p_billing_period and usage.message_count > 0
        order by usage.user_id
        for update
    )
    update public.message_usage as usage
    set message_count = 0, updated_at = headroom.now()
    from locked
    where usage.user_id = locked.user_id and usage.billing_period = p_billing_period;
    get diagnostics v_rows = row_count;
    return v_rows;
end
$$;

-- Puts a user on a plan, from the next message on; the count of the period stays. What is left out is as if never
-- said, except the anchor day and the start of a trial, which stay. Returns the user's usage under the new plan.
create function public.set_plan(
    p_user_id uuid,
    p_plan text,
    p_state text default null,
    p_started timestamptz default null,
    p_expires timestamptz default null,
    p_grace_until timestamptz default null,
    p_anchor integer default null
) returns headroom.answer
    language plpgsql set search_path = pg_catalog
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_plan headroom.plans;
    v_state text;
    v_subscriber headroom.subscribers;
    v_before headroom.terms;
    v_started timestamptz := p_started;
    v_expires timestamptz := p_expires;
    v_grace_until timestamptz := p_grace_until;
begin
    if p_user_id is null or p_plan is null then
        raise exception 'p_user_id and p_plan must not be null' using errcode = 'null_value_not_allowed';
    elsif p_anchor not between 1 and 31 then
        raise exception 'p_anchor must be a day of the month, 1 to 31' using errcode = 'invalid_parameter_value';
    elsif not (isfinite(coalesce(p_started, v_now)) and isfinite(coalesce(p_expires, v_now))
        and isfinite(coalesce(p_grace_until, v_now))) then
        raise exception 'an instant must be a real date; leave it out for never'
            using errcode = 'invalid_parameter_value';
    end if;
    select * into v_plan from headroom.plans where plan = p_plan;
    if not found then
        raise exception 'there is no plan %', quote_literal(p_plan)
            using errcode = 'no_data_found', hint = 'select plan from headroom.plans lists them.';
    end if;
    v_state := coalesce(p_state, case v_plan.cycle when 'trial' then 'trial' when 'lifetime' then 'free' else 'active' end);
    if not v_state = any (case v_plan.cycle
        when 'trial' then array['trial', 'expired', 'revoked']
        when 'lifetime' then array['free', 'expired', 'revoked']
        else array['active', 'cancelled', 'grace_period', 'billing_retry', 'expired', 'revoked']
    end) then
        raise exception 'state % does not fit plan %', quote_literal(v_state), quote_literal(p_plan)
            using errcode = 'invalid_parameter_value', hint = case v_plan.cycle
                when 'trial' then 'A trial is trial, expired or revoked.'
                when 'lifetime' then 'A plan that never resets is free, expired or revoked.'
                else 'A monthly plan is active, cancelled, grace_period, billing_retry, expired or revoked.'
            end;
    end if;

    insert into headroom.subscribers (user_id) values (p_user_id) on conflict (user_id) do nothing;
    select * into strict v_subscriber from headroom.subscribers where user_id = p_user_id for update;
    v_before := headroom.terms_of(p_user_id, v_now, 'deny');
    if v_plan.cycle = 'trial' then
        v_started := coalesce(p_started, v_subscriber.trial_started_at, v_now);
    end if;
    update headroom.subscribers
    set anchor_day = coalesce(p_anchor, anchor_day),
        trial_started_at = case v_plan.cycle when 'trial' then v_started else trial_started_at end,
        previous_plan = case
            when v_before.is_known and v_before.cycle = 'monthly' and v_before.plan <> p_plan then v_before.plan
            else previous_plan
        end
    where user_id = p_user_id
    returning * into v_subscriber;

    case v_state
        when 'cancelled' then
            -- A store cancels to the end of what was paid for.
            v_expires := coalesce(p_expires, headroom.cycle_start(
                (headroom.cycle_month(v_now, v_subscriber.anchor_day) + interval '1 month')::date, v_subscriber.anchor_day
            ));
        when 'grace_period' then
            v_grace_until := coalesce(p_grace_until, coalesce(p_expires, v_now) + interval '16 days');
        when 'billing_retry' then
            v_grace_until := least(p_grace_until, v_now);
            -- Paid time that is left would be access; where nobody told of any, there is none to end.
            v_expires := case when p_expires > v_now then v_now else p_expires end;
        when 'expired' then
            v_expires := least(p_expires, v_now);
        else
            null;
    end case;
    delete from headroom.subscriptions where user_id = p_user_id;
    insert into headroom.subscriptions (
        user_id, original_transaction_id, plan, started_at, expires_at, grace_until, billing_issue_at, unsubscribed_at,
        revoked_at
    ) values (
        p_user_id, 'operator', p_plan, v_started, v_expires,
        case when v_state in ('grace_period', 'billing_retry') then v_grace_until end,
        case when v_state in ('grace_period', 'billing_retry') then v_now end,
        case
            when v_state = 'cancelled' then v_now
            when v_state = 'expired' and v_plan.cycle = 'trial' then v_expires
        end,
        case when v_state = 'revoked' then v_now end
    );
    -- The next message of this user finds no usable row, resolves the new terms and keeps the count.
    update public.message_usage as usage
    set usable_until = '-infinity'
    where usage.user_id = p_user_id and usage.usable_until > '-infinity';
    return headroom.answer_to(p_user_id, headroom.peek(p_user_id, 'deny'), 0);
end
$$;
