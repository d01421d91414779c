-- Counting, the careful way: for users whose row is missing, blocked, lapsed or out of date. Everybody else is counted
-- by the one UPDATE in sql/queries/count_batch.sql, which joins nothing.

-- A user's standing as the service and increment_and_check_usage answer it, after what was asked, and what became of it.
-- verdict: allowed, blocked, held, released, ok; conflict, expired, unknown_key, released_key for a key that cannot be
-- used so. "messages" is what was counted, held or given back by this very request, 0 for a repetition.
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
    verdict text,
    messages bigint,
    is_replay boolean
);

-- The limit in force: what the row says (a grant, an operator's UPDATE) while the plan's own allowance is what it was
-- when the row took it, else the plan's allowance.
create function headroom.limit_in_force(p_row public.message_usage, p_allowance integer) returns integer
    language sql immutable parallel safe
    return case
        when (p_row).plan is not null and (p_row).plan_limit is not distinct from p_allowance then (p_row)."limit"
        else p_allowance
    end;

-- Messages that a user holds in a period at p_at, and when the next of these holds ends by itself.
create function headroom.holds_of(
    p_user_id uuid, p_billing_period text, p_at timestamptz, out held bigint, out ends_at timestamptz
)
    language sql stable
begin atomic
    select coalesce(sum(keys.messages), 0)::bigint, min(keys.expires_at)
    from headroom.message_keys as keys
    where keys.user_id = p_user_id and keys.status = 'h' and keys.billing_period = p_billing_period
        and keys.expires_at > p_at;
end;

-- What a row holds now. Its own number is as of its last message: holds that have ended by themselves since count in it.
create function headroom.held_now(p_row public.message_usage) returns integer
    language sql stable
    return case
        when (p_row).held = 0 then 0
        else (
            select least(holds.held, 2147483647)::integer
            from headroom.holds_of((p_row).user_id, (p_row).billing_period, headroom.now()) as holds
        )
    end;

-- "held" in the row is exact until usable_until, which no hold outlives; after it, holds have to be looked up.
create function headroom.standing_from(
    p_terms headroom.terms, p_row public.message_usage, p_held bigint, p_at timestamptz
) returns headroom.standing
    language sql immutable parallel safe
    return row(
        (p_terms).plan, (p_terms).state, (p_terms).lapse, (p_terms).billing_period,
        coalesce((p_row).message_count, 0), least(coalesce(p_held, 0), 2147483647)::integer,
        headroom.limit_in_force(p_row, (p_terms).allowance),
        (p_terms).started_at, (p_terms).resets_at, (p_terms).expires_at, (p_terms).previous_plan,
        p_at, (p_terms).plan_revision, 'ok', 0, false
    )::headroom.standing;

-- A user's standing now. Reads only: nothing is created, so a trial that has not started shows as if it started now.
create function headroom.peek(p_user_id uuid, p_unknown_users text) returns headroom.standing
    language sql stable
begin atomic
    select headroom.standing_from(
        terms, usage,
        case when usage.held > 0 then (
            select holds.held from headroom.holds_of(p_user_id, terms.billing_period, headroom.now()) as holds
        ) end,
        headroom.now()
    )
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

-- What a key's repetition is told: the first outcome's numbers again, or that the key means something else.
create function headroom.replay(
    p_standing headroom.standing, p_key headroom.message_keys, p_verb text, p_messages integer
) returns headroom.standing
    language plpgsql stable set search_path = pg_catalog
as $$
declare
    v_standing headroom.standing := p_standing;
    v_row public.message_usage;
begin
    if (p_verb = 'consume') <> ((p_key).verb = 'c') or p_messages <> (p_key).messages then
        v_standing.verdict := 'conflict';
        return v_standing;
    end if;
    if (p_key).billing_period <> v_standing.billing_period then
        -- From before the month's end, or from before the plan changed: it is answered with that period.
        select * into v_row from public.message_usage as usage
        where usage.user_id = (p_key).user_id and usage.billing_period = (p_key).billing_period;
        v_standing.billing_period := (p_key).billing_period;
        v_standing.plan := coalesce(v_row.plan, v_standing.plan);
        v_standing.state := coalesce(v_row.state, v_standing.state);
        v_standing.started_at := coalesce(v_row.started_at, v_standing.started_at);
        v_standing.resets_at := v_row.resets_at;
        v_standing.expires_at := v_row.expires_at;
    end if;
    v_standing.verdict := case p_verb when 'reserve' then 'held' else 'allowed' end;
    v_standing.lapse := null;
    v_standing.used := (p_key).used;
    v_standing.held := (p_key).held;
    v_standing."limit" := (p_key)."limit";
    if p_verb = 'commit' then
        v_standing.used := (p_key).committed_used;
        v_standing.held := (p_key).committed_held;
        v_standing."limit" := (p_key).committed_limit;
    end if;
    v_standing.is_replay := true;
    return v_standing;
end
$$;

-- Carries out one user's requests in their order and returns what each is told. Whatever the hot statements cannot do
-- comes here: users whose row is missing, blocked, lapsed or out of date, repeated keys, and holds.
--
-- p_verbs: consume, reserve, commit, release, check, usage; p_messages, p_keys and p_ttls_s (seconds) go with them, null
-- where they do not apply. Each request is all or nothing. The row is written once, at the end, with the terms that
-- hold now, so that the next message takes the short way.
create function headroom.perform(
    p_user_id uuid, p_verbs text[], p_messages integer[], p_keys text[], p_ttls_s integer[], p_unknown_users text
) returns headroom.standing[]
    language plpgsql set search_path = pg_catalog
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_terms headroom.terms;
    v_row public.message_usage;
    v_row_exists boolean;
    v_is_read boolean := false;
    v_is_changed boolean := false;
    v_used bigint;
    v_held bigint;
    v_released integer;
    v_holds_end_at timestamptz;
    v_limit bigint;
    v_standing headroom.standing;
    v_answer headroom.standing;
    v_answers headroom.standing[];
    v_key headroom.message_keys;
    v_verb text;
    v_messages integer;
    v_expires_at timestamptz;
begin
    for i in 1 .. cardinality(p_verbs) loop
        v_verb := p_verbs[i];
        v_messages := p_messages[i];
        -- A second turn only after losing a race for a row that was not there: the winner's row is there now.
        loop
            if not v_is_read then
                -- Against set_plan, which takes the same row for update: terms read after this hold until we commit.
                perform from headroom.subscribers where user_id = p_user_id for share;
                v_terms := headroom.terms_of(p_user_id, v_now, p_unknown_users);
                select * into v_row from public.message_usage as usage
                where usage.user_id = p_user_id and usage.billing_period = v_terms.billing_period
                for update;
                v_row_exists := found;
                v_held := 0;
                v_holds_end_at := null;
                if v_row.held > 0 then
                    select holds.held, holds.ends_at into v_held, v_holds_end_at
                    from headroom.holds_of(p_user_id, v_terms.billing_period, v_now) as holds;
                end if;
                v_standing := headroom.standing_from(v_terms, v_row, v_held, v_now);
                v_used := v_standing.used;
                v_released := 0;
                -- An unlimited count stops at the largest integer instead of failing.
                v_limit := coalesce(v_standing."limit", 9223372036854775807);
                v_is_changed := v_row_exists and v_terms.lapse is null
                    and (v_row.usable_until is distinct from least(v_terms.usable_until, v_holds_end_at)
                        or v_row.plan_revision <> v_terms.plan_revision);
                v_is_read := true;
            end if;
            v_standing.used := v_used;
            v_standing.held := least(v_held, 2147483647);
            v_answer := v_standing;
            v_key := null;
            if p_keys[i] is not null then
                select * into v_key from headroom.message_keys as keys
                where keys.user_id = p_user_id and keys.key = p_keys[i]
                for update;
            end if;

            if v_verb in ('consume', 'reserve', 'check') then
                if v_key.key is not null then
                    v_answer := headroom.replay(v_standing, v_key, v_verb, v_messages);
                    exit;
                elsif v_terms.lapse is not null or v_used + v_held + v_messages > v_limit then
                    v_answer.verdict := 'blocked';
                    exit;
                elsif v_verb = 'check' then
                    v_answer.verdict := 'allowed';
                    exit;
                end if;
                if not v_row_exists then
                    if v_terms.is_known or headroom.introduce(p_user_id, v_terms) then
                        insert into public.message_usage (user_id, billing_period, updated_at, plan)
                        values (p_user_id, v_terms.billing_period, v_now, v_terms.plan)
                        on conflict (user_id, billing_period) do nothing
                        returning * into v_row;
                        v_row_exists := found;
                    end if;
                    if not v_row_exists then
                        v_is_read := false;
                        continue;
                    end if;
                end if;
                v_is_changed := true;
                v_expires_at := null;
                if v_verb = 'consume' then
                    v_used := least(v_used + v_messages, 2147483647);
                    v_answer.verdict := 'allowed';
                else
                    v_held := v_held + v_messages;
                    v_expires_at := v_now + make_interval(secs => p_ttls_s[i]);
                    v_holds_end_at := least(v_holds_end_at, v_expires_at);
                    v_answer.verdict := 'held';
                end if;
                if p_keys[i] is not null then
                    insert into headroom.message_keys (
                        user_id, created_at, generation, messages, used, held, "limit", expires_at, verb, status,
                        billing_period, key
                    ) values (
                        p_user_id, v_now, v_row.generation, v_messages, v_used, least(v_held, 2147483647),
                        v_standing."limit", v_expires_at, case v_verb when 'reserve' then 'r' else 'c' end,
                        case v_verb when 'reserve' then 'h' else 'c' end, v_terms.billing_period, p_keys[i]
                    );
                end if;
                v_answer.messages := v_messages;

            elsif v_verb in ('commit', 'release') and v_key.key is null then
                v_answer.verdict := 'unknown_key';

            elsif v_verb = 'commit' then
                if v_key.verb <> 'r' then
                    v_answer.verdict := 'conflict';
                elsif v_key.status = 'r' then
                    v_answer.verdict := 'released_key';
                elsif v_key.status = 'c' then
                    v_answer := headroom.replay(v_standing, v_key, 'commit', v_key.messages);
                    exit;
                elsif v_key.expires_at <= v_now then
                    v_answer.verdict := 'expired';
                elsif v_key.billing_period = v_terms.billing_period and v_row_exists then
                    v_held := v_held - v_key.messages;
                    v_used := least(v_used + v_key.messages, 2147483647);
                    v_is_changed := true;
                    update headroom.message_keys as keys
                    set status = 'c', committed_used = v_used,
                        committed_held = least(v_held, 2147483647),
                        committed_limit = v_standing."limit", generation = v_row.generation
                    where keys.user_id = p_user_id and keys.key = v_key.key;
                    v_answer.verdict := 'allowed';
                    v_answer.messages := v_key.messages;
                    v_answer.lapse := null;
                else
                    -- The period ended meanwhile: the message counts where it was held.
                    perform from public.message_usage as usage
                    where usage.user_id = p_user_id and usage.billing_period = v_key.billing_period
                    for update;
                    if not found then
                        -- An operator deleted the row, and the hold with it.
                        v_answer.verdict := 'expired';
                    else
                        -- Looked up with the row locked; what the row itself says may have expired since.
                        select least(holds.held - v_key.messages, 2147483647) into v_key.committed_held
                        from headroom.holds_of(p_user_id, v_key.billing_period, v_now) as holds;
                        update public.message_usage as usage
                        set message_count = least(usage.message_count::bigint + v_key.messages, 2147483647),
                            held = v_key.committed_held, updated_at = v_now
                        where usage.user_id = p_user_id and usage.billing_period = v_key.billing_period
                        returning usage.message_count, usage."limit", usage.generation
                        into v_key.committed_used, v_key.committed_limit, v_key.generation;
                        update headroom.message_keys as keys
                        set status = 'c', committed_used = v_key.committed_used,
                            committed_held = v_key.committed_held, committed_limit = v_key.committed_limit,
                            generation = v_key.generation
                        where keys.user_id = p_user_id and keys.key = v_key.key;
                        v_answer := headroom.replay(v_standing, v_key, 'commit', v_key.messages);
                        v_answer.is_replay := false;
                        v_answer.messages := v_key.messages;
                        exit;
                    end if;
                end if;

            elsif v_verb = 'release' then
                v_answer.verdict := 'released';
                if v_key.status = 'r' then
                    v_answer.is_replay := true;
                    exit;
                end if;
                update headroom.message_keys as keys set status = 'r'
                where keys.user_id = p_user_id and keys.key = v_key.key;
                if v_key.status = 'h' and v_key.expires_at > v_now then
                    v_answer.messages := v_key.messages;
                    if v_key.billing_period = v_terms.billing_period then
                        v_held := v_held - v_key.messages;
                        v_is_changed := v_row_exists;
                    else
                        update public.message_usage as usage set held = greatest(usage.held - v_key.messages, 0)
                        where usage.user_id = p_user_id and usage.billing_period = v_key.billing_period;
                    end if;
                elsif v_key.status = 'c' and v_row_exists and v_key.generation = v_row.generation
                    and v_key.billing_period = v_terms.billing_period then
                    v_answer.messages := v_key.messages;
                    v_used := greatest(v_used - v_key.messages, 0);
                    v_released := v_released + v_key.messages;
                    v_is_changed := true;
                elsif v_key.status = 'c' then
                    -- Only off the count that it was in: the generation changes with every reset.
                    update public.message_usage as usage
                    set message_count = greatest(usage.message_count - v_key.messages, 0),
                        released = usage.released + v_key.messages, updated_at = v_now
                    where usage.user_id = p_user_id and usage.billing_period = v_key.billing_period
                        and usage.generation = v_key.generation;
                    if found then
                        v_answer.messages := v_key.messages;
                    end if;
                end if;
            end if;
            v_answer.used := v_used;
            v_answer.held := least(v_held, 2147483647);
            exit;
        end loop;
        v_answers := v_answers || v_answer;
    end loop;

    if v_is_changed then
        update public.message_usage as usage
        set message_count = v_used,
            held = least(v_held, 2147483647),
            released = usage.released + v_released,
            updated_at = case when v_used <> usage.message_count or v_held <> usage.held then v_now else usage.updated_at end,
            "limit" = v_standing."limit", plan_limit = v_terms.allowance,
            plan = v_terms.plan, state = v_terms.state, started_at = v_terms.started_at,
            resets_at = v_terms.resets_at, expires_at = v_terms.expires_at,
            previous_plan = v_terms.previous_plan,
            usable_until = case
                -- A lapsed user's row is changed by a commit or a release only, and is not to be counted in.
                when v_terms.lapse is null then least(v_terms.usable_until, v_holds_end_at)
                else '-infinity'
            end,
            plan_revision = v_terms.plan_revision
        where usage.user_id = p_user_id and usage.billing_period = v_terms.billing_period;
    end if;
    return v_answers;
end
$$;

-- The same for a lane's batch, exactly once: p_users ascending, and the requests of user i at
-- [p_first[i] .. p_first[i + 1] - 1] of the other arrays. Sent again with the same number after a lost connection, it
-- returns what it returned the first time, if that was committed, and else performs now. The receipt's row lock makes
-- the second wait for a first that is still running.
create function headroom.perform_batch(
    p_lane uuid, p_number bigint, p_users uuid[], p_first integer[], p_verbs text[], p_messages integer[],
    p_keys text[], p_ttls_s integer[], p_unknown_users text
) returns headroom.standing[]
    language plpgsql set search_path = pg_catalog
as $$
declare
    v_receipt headroom.lane_receipts;
    v_standings headroom.standing[];
    v_last integer;
begin
    select * into v_receipt from headroom.lane_receipts where lane = p_lane for update;
    if v_receipt.number = p_number then
        return v_receipt.standings::headroom.standing[];
    elsif v_receipt.number is distinct from p_number - 1 then
        -- Swept away while the lane was idle, or the database is not the one it was.
        raise exception 'lane % is at number %, not at %', p_lane, v_receipt.number, p_number - 1
            using errcode = 'HR001';
    end if;
    for i in 1 .. cardinality(p_users) loop
        v_last := coalesce(p_first[i + 1] - 1, cardinality(p_verbs));
        v_standings := v_standings || headroom.perform(
            p_users[i], p_verbs[p_first[i] : v_last], p_messages[p_first[i] : v_last], p_keys[p_first[i] : v_last],
            p_ttls_s[p_first[i] : v_last], p_unknown_users
        );
    end loop;
    update headroom.lane_receipts
    set number = p_number, counted = null, standings = v_standings::text, moved_at = headroom.now()
    where lane = p_lane;
    return v_standings;
end
$$;
