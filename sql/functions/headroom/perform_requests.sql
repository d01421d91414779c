-- Performs one user's requests in order and returns one usage snapshot per request. This is the slow path: users whose
-- row is missing, blocked, without access or outdated, used keys, and holds. Locks the subscriber, then the usage row,
-- then keys.
--
-- p_verbs: consume, reserve, commit, release, check or usage. p_messages, p_keys and p_ttls_s (seconds) have one
-- element per request, or null. A request is counted completely or not at all. The usage row is written once, at the
-- end, with the present entitlement, for the fast path.
create or replace function headroom.perform_requests(
    p_user_id uuid, p_verbs text[], p_messages integer[], p_keys text[], p_ttls_s integer[], p_unknown_users_policy text
) returns headroom.usage_snapshot[]
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    -- A row that is dated later was written while the clock was ahead.
    v_latest constant timestamptz := v_now + interval '1 hour';
    v_may_create constant boolean := p_unknown_users_policy <> 'deny' and p_verbs && array['consume', 'reserve'];
    v_entitlement headroom.entitlement;
    v_row public.message_usage;
    v_is_locked boolean;
    v_is_loaded boolean := false;
    v_is_changed boolean := false;
    v_used bigint;
    v_held bigint;
    v_released integer := 0;
    v_holds_end_at timestamptz;
    v_limit bigint;
    v_snapshot headroom.usage_snapshot;
    v_answer headroom.usage_snapshot;
    v_answers headroom.usage_snapshot[];
    v_key headroom.message_keys;
    v_verb text;
    v_expires_at timestamptz;
    v_attempts integer := 0;
begin
    for i in 1 .. cardinality(p_verbs) loop
        v_verb := p_verbs[i];
        -- Repeats only if another session created the subscriber or the usage row first.
        loop
            if not v_is_loaded then
                v_attempts := v_attempts + 1;
                if v_attempts > 10 then
                    perform headroom.raise_discarded_row('public.message_usage', p_user_id);
                end if;
                v_is_locked := headroom.lock_for_message(p_user_id, v_may_create);
                v_entitlement := headroom.entitlement(p_user_id, v_now, p_unknown_users_policy);
                -- A row that a grant has inserted since then is found when the first message inserts its own.
                v_row := null;
                if v_is_locked or not v_may_create then
                    v_row := headroom.lock_usage(p_user_id, v_entitlement.billing_period);
                end if;
                if v_row.updated_at > v_latest
                    or v_entitlement.cycle = 'monthly' and v_entitlement.spent_messages is not null then
                    perform headroom.correct_clock_jump(p_user_id, v_entitlement, v_now);
                    v_entitlement := headroom.entitlement(p_user_id, v_now, p_unknown_users_policy);
                    v_row := headroom.lock_usage(p_user_id, v_entitlement.billing_period);
                end if;
                v_held := 0;
                v_holds_end_at := null;
                if v_row.held > 0 then
                    select holds.held, holds.ends_at into v_held, v_holds_end_at
                    from headroom.active_holds(p_user_id, v_entitlement.billing_period, v_now) as holds;
                end if;
                v_snapshot := headroom.build_usage_snapshot(
                    v_entitlement, v_row.message_count, v_held, headroom.effective_limit(
                        v_row.plan, v_row.plan_limit, v_row."limit", v_row.granted, v_entitlement.allowance
                    ), v_now
                );
                v_used := v_snapshot.used;
                -- An unlimited count stops at the largest integer when it is written.
                v_limit := coalesce(v_snapshot."limit", 9223372036854775807);
                v_is_changed := v_row.user_id is not null and v_entitlement.denial_reason is null and (
                    v_row.plan_revision <> v_entitlement.plan_revision
                    or v_row.usable_until is distinct from case
                        when v_entitlement.has_subscription then least(v_entitlement.usable_until, v_holds_end_at)
                        else '-infinity'
                    end
                );
                v_is_loaded := true;
            end if;
            v_snapshot.used := v_used;
            v_snapshot.held := least(v_held, 2147483647);
            v_answer := v_snapshot;
            v_key := null;
            if p_keys[i] is not null then
                v_key := headroom.lock_key(p_user_id, p_keys[i]);
            end if;

            if v_verb in ('consume', 'reserve', 'check') then
                v_answer.verdict := case
                    when v_key.status = 'r' then 'released_key'
                    when (v_verb = 'consume') <> (v_key.verb = 'c') or p_messages[i] <> v_key.messages then 'conflict'
                    when v_key.status = 'h' and v_key.expires_at <= v_now then 'expired'
                    when v_key.key is null
                        and (v_entitlement.denial_reason is not null or v_used + v_held + p_messages[i] > v_limit)
                        then 'blocked'
                    when v_verb = 'reserve' then 'held'
                    else 'allowed'
                end;
                if v_key.key is not null and v_answer.verdict in ('allowed', 'held') then
                    v_answer := headroom.replay_snapshot(
                        v_answer, p_user_id, v_key.billing_period, v_key.used, v_key.held, v_key."limit"
                    );
                end if;
                exit when v_key.key is not null or v_answer.verdict = 'blocked' or v_verb = 'check';
                -- Also with a usage row: an operator, a grant or an older client may have created it.
                if not v_entitlement.has_subscription then
                    if not headroom.create_first_subscription(p_user_id, v_entitlement) then
                        if i > 1 then
                            -- Reading again would discard earlier requests that are not written yet.
                            raise exception 'another session created the subscriber of user %', p_user_id
                                using errcode = 'serialization_failure', hint = 'Try again.';
                        end if;
                        v_is_loaded := false;
                        continue;
                    end if;
                    v_entitlement.has_subscription := true;
                end if;
                if v_row.user_id is null then
                    insert into public.message_usage (bucket, user_id, billing_period, updated_at, plan)
                    values (
                        headroom.bucket_of(p_user_id), p_user_id, v_entitlement.billing_period, v_now,
                        v_entitlement.plan
                    )
                    on conflict (user_id, billing_period) do nothing
                    returning * into v_row;
                    if not found then
                        v_is_loaded := false;
                        continue;
                    end if;
                    perform headroom.end_earlier_month(p_user_id, v_entitlement.billing_period, v_now);
                end if;
                v_is_changed := true;
                v_expires_at := case v_verb when 'reserve' then v_now + make_interval(secs => p_ttls_s[i]) end;
                v_holds_end_at := least(v_holds_end_at, v_expires_at);
                if v_verb = 'consume' then
                    v_used := least(v_used + p_messages[i], 2147483647);
                else
                    v_held := v_held + p_messages[i];
                end if;
                if p_keys[i] is not null then
                    insert into headroom.message_keys (
                        bucket, user_id, key, created_at, generation, messages, used, held, "limit", expires_at,
                        billing_period, verb, status
                    ) values (
                        headroom.bucket_of(p_user_id), p_user_id, p_keys[i], v_now, v_row.generation, p_messages[i],
                        v_used, least(v_held, 2147483647), v_snapshot."limit", v_expires_at,
                        v_entitlement.billing_period, left(v_verb, 1), case v_verb when 'reserve' then 'h' else 'c' end
                    );
                end if;
                v_answer.messages := p_messages[i];

            elsif v_verb in ('commit', 'release') and v_key.key is null then
                v_answer.verdict := 'unknown_key';

            elsif v_verb = 'commit' then
                v_answer.verdict := 'allowed';
                if v_key.verb <> 'r' then
                    v_answer.verdict := 'conflict';
                elsif v_key.status = 'r' then
                    v_answer.verdict := 'released_key';
                elsif v_key.status = 'c' then
                    v_answer := headroom.replay_snapshot(
                        v_answer, p_user_id, v_key.billing_period, v_key.committed_used, v_key.committed_held,
                        v_key.committed_limit
                    );
                    exit;
                elsif v_key.expires_at <= v_now then
                    v_answer.verdict := 'expired';
                elsif v_key.billing_period = v_entitlement.billing_period and v_row.user_id is not null then
                    v_held := v_held - v_key.messages;
                    v_used := least(v_used + v_key.messages, 2147483647);
                    v_is_changed := true;
                    update headroom.message_keys
                    set status = 'c', committed_used = v_used, committed_held = least(v_held, 2147483647),
                        committed_limit = v_snapshot."limit", generation = v_row.generation
                    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and key = v_key.key;
                    v_answer.messages := v_key.messages;
                    v_answer.denial_reason := null;
                else
                    -- The period of the hold has ended. The message counts in that period.
                    v_answer := headroom.commit_in_past_period(
                        v_answer, p_user_id, v_key.key, v_key.billing_period, v_key.messages
                    );
                    exit;
                end if;

            elsif v_verb = 'release' then
                v_answer.verdict := 'released';
                if v_key.status = 'r' then
                    v_answer.is_replay := true;
                    exit;
                end if;
                update headroom.message_keys set status = 'r'
                where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and key = v_key.key;
                if v_key.status = 'h' and v_key.expires_at <= v_now then
                    null;  -- An expired hold holds nothing.
                elsif v_key.status = 'h' and v_key.billing_period = v_entitlement.billing_period then
                    v_answer.messages := v_key.messages;
                    v_held := v_held - v_key.messages;
                    v_is_changed := v_row.user_id is not null;
                elsif v_key.status = 'c' and v_key.generation = v_row.generation
                    and v_key.billing_period = v_entitlement.billing_period then
                    v_answer.messages := v_key.messages;
                    v_used := greatest(v_used - v_key.messages, 0);
                    v_released := v_released + v_key.messages;
                    v_is_changed := true;
                else
                    v_answer.messages := headroom.release_in_other_period(
                        p_user_id, v_key.billing_period, v_key.generation, v_key.messages, v_key.status = 'h', v_now
                    );
                end if;
            end if;
            v_answer.used := v_used;
            v_answer.held := least(v_held, 2147483647);
            exit;
        end loop;
        v_answers := v_answers || v_answer;
    end loop;

    if v_is_changed then
        perform headroom.write_usage(
            p_user_id, v_entitlement, v_snapshot."limit", v_used, v_held, v_released, v_holds_end_at, v_now
        );
    end if;
    return v_answers;
end
$$;
