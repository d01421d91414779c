-- Counting, the careful way: for users whose row is missing, blocked, lapsed or out of date. Everybody else is counted
-- by the one UPDATE in sql/queries/count_batch.sql, which joins nothing.

-- A user's standing as the service and increment_and_check_usage answer it. "used" and "held" are before the request,
-- "counted" is how many messages the request counted.
create type headroom.standing as (
    plan text,
    state text,
    lapse text,
    billing_period text,
    used integer,
    held integer,
    "limit" integer,
    started_at timestamptz,
    resets_at timestamptz,
    expires_at timestamptz,
    previous_plan text,
    observed_at timestamptz,
    plan_revision integer,
    counted bigint
);

-- The limit in force: what the row says (a grant, an operator's UPDATE) while the plan's own allowance is what it was
-- when the row took it, else the plan's allowance.
create function headroom.limit_in_force(p_row public.message_usage, p_allowance integer) returns integer
    language sql immutable parallel safe
    return case
        when (p_row).plan is not null and (p_row).plan_limit is not distinct from p_allowance then (p_row)."limit"
        else p_allowance
    end;

create function headroom.standing_from(
    p_terms headroom.terms, p_row public.message_usage, p_at timestamptz
) returns headroom.standing
    language sql immutable parallel safe
    return row(
        (p_terms).plan, (p_terms).state, (p_terms).lapse, (p_terms).billing_period,
        coalesce((p_row).message_count, 0), coalesce((p_row).held, 0),
        headroom.limit_in_force(p_row, (p_terms).allowance),
        (p_terms).started_at, (p_terms).resets_at, (p_terms).expires_at, (p_terms).previous_plan,
        p_at, (p_terms).plan_revision, 0
    )::headroom.standing;

-- A user's standing now. Reads only: nothing is created, so a trial that has not started shows as if it started now.
create function headroom.peek(p_user_id uuid, p_unknown_users text) returns headroom.standing
    language sql stable
begin atomic
    select headroom.standing_from(terms, usage, headroom.now())
    from headroom.terms_of(p_user_id, headroom.now(), p_unknown_users) as terms
    left join public.message_usage as usage
        on usage.user_id = p_user_id and usage.billing_period = terms.billing_period;
end;

-- Remembers a user who was unknown until a message was counted. False when somebody else did so in between: the caller
-- has to look again.
create function headroom.introduce(p_user_id uuid, p_terms headroom.terms) returns boolean
    language plpgsql set search_path = pg_catalog
as $$
begin
    insert into headroom.subscribers (user_id, trial_started_at)
    values (p_user_id, case (p_terms).cycle when 'trial' then (p_terms).started_at end)
    on conflict (user_id) do nothing;
    if not found then
        -- Known, but without a subscription: an anchor day was kept, or a subscription was removed.
        perform from headroom.subscribers where user_id = p_user_id for update;
        if exists (select from headroom.subscriptions where user_id = p_user_id) then
            return false;
        end if;
        update headroom.subscribers
        set trial_started_at = coalesce(trial_started_at, case (p_terms).cycle when 'trial' then (p_terms).started_at end)
        where user_id = p_user_id;
    end if;
    insert into headroom.subscriptions (user_id, original_transaction_id, plan, started_at)
    values (p_user_id, 'first message', (p_terms).plan, (p_terms).started_at);
    return true;
end
$$;

-- Counts each of p_messages in its order, all or nothing each, and returns the standing before the first of them: who
-- knows that can tell what became of each. Writes the row anew with the terms that hold now, so that the next message
-- takes the short way.
create function headroom.consume(
    p_user_id uuid, p_messages integer[], p_unknown_users text
) returns headroom.standing
    language plpgsql set search_path = pg_catalog
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_terms headroom.terms;
    v_row public.message_usage;
    v_row_exists boolean;
    v_standing headroom.standing;
    v_counted bigint;
    v_limit bigint;
    v_messages integer;
begin
    -- Each turn starts over after losing a race for a row that was not there; the winner's row is there the next time.
    loop
        -- Against set_plan, which takes the same row for update: terms read after this stay true until we commit.
        perform from headroom.subscribers where user_id = p_user_id for share;
        v_terms := headroom.terms_of(p_user_id, v_now, p_unknown_users);
        select * into v_row from public.message_usage as usage
        where usage.user_id = p_user_id and usage.billing_period = v_terms.billing_period
        for update;
        v_row_exists := found;
        v_standing := headroom.standing_from(v_terms, v_row, v_now);
        v_counted := 0;
        if v_terms.lapse is not null then
            return v_standing;
        end if;
        -- An unlimited count stops at the largest integer instead of failing (least(), below).
        v_limit := coalesce(v_standing."limit", 9223372036854775807);
        foreach v_messages in array p_messages loop
            if v_standing.used + v_standing.held + v_counted + v_messages <= v_limit then
                v_counted := v_counted + v_messages;
            end if;
        end loop;
        v_standing.counted := v_counted;
        if v_row_exists then
            update public.message_usage as usage
            set message_count = least(usage.message_count + v_counted, 2147483647),
                updated_at = case when v_counted > 0 then v_now else usage.updated_at end,
                "limit" = v_standing."limit", plan_limit = v_terms.allowance,
                plan = v_terms.plan, state = v_terms.state, started_at = v_terms.started_at,
                resets_at = v_terms.resets_at, expires_at = v_terms.expires_at,
                previous_plan = v_terms.previous_plan, usable_until = v_terms.usable_until,
                plan_revision = v_terms.plan_revision
            where usage.user_id = p_user_id and usage.billing_period = v_terms.billing_period
                -- Blocked again, and the row already says so: writing it once more would only cost.
                and (v_counted > 0 or usage.usable_until <> v_terms.usable_until
                    or usage.plan_revision <> v_terms.plan_revision);
            return v_standing;
        end if;
        if v_counted = 0 then
            return v_standing;
        end if;
        if v_terms.is_known or headroom.introduce(p_user_id, v_terms) then
            insert into public.message_usage as usage (
                user_id, billing_period, message_count, "limit", updated_at, plan, plan_limit, state, started_at,
                resets_at, expires_at, previous_plan, usable_until, plan_revision
            ) values (
                p_user_id, v_terms.billing_period, least(v_counted, 2147483647), v_standing."limit", v_now, v_terms.plan,
                v_terms.allowance, v_terms.state, v_terms.started_at, v_terms.resets_at, v_terms.expires_at,
                v_terms.previous_plan, v_terms.usable_until, v_terms.plan_revision
            )
            on conflict (user_id, billing_period) do nothing;
            if found then
                return v_standing;
            end if;
        end if;
    end loop;
end
$$;

-- The same for a lane's batch, exactly once: p_users ascending, and the messages of user i at
-- p_messages[p_first[i] .. p_first[i + 1] - 1]. Sent again with the same number after a lost connection, it returns
-- what it returned the first time, if that was committed, and else counts now. The receipt's row lock makes the second
-- wait for a first that is still running.
create function headroom.consume_batch(
    p_lane uuid, p_number bigint, p_users uuid[], p_first integer[], p_messages integer[], p_unknown_users text
) returns headroom.standing[]
    language plpgsql set search_path = pg_catalog
as $$
declare
    v_receipt headroom.lane_receipts;
    v_standings headroom.standing[];
begin
    select * into strict v_receipt from headroom.lane_receipts where lane = p_lane for update;
    if v_receipt.number = p_number then
        return v_receipt.standings::headroom.standing[];
    elsif v_receipt.number <> p_number - 1 then
        raise exception 'lane % is at number %, not at %', p_lane, v_receipt.number, p_number - 1;
    end if;
    for i in 1 .. cardinality(p_users) loop
        v_standings := v_standings || headroom.consume(
            p_users[i], p_messages[p_first[i] : coalesce(p_first[i + 1] - 1, cardinality(p_messages))], p_unknown_users
        );
    end loop;
    update headroom.lane_receipts
    set number = p_number, counted = null, standings = v_standings::text, moved_at = headroom.now()
    where lane = p_lane;
    return v_standings;
end
$$;
