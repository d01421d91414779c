-- Counts a batch in which requests have keys: CONSUME, and RESERVE, COMMIT and RELEASE of held messages; or in which
-- CONSUMEs name parts that the plan limits. It works as headroom.count_batch does, with these differences.
--
-- p_keys: null, or the key of at most one request per user. p_verbs: that request: consume, reserve, commit or release.
-- p_key_messages: its messages; null for release, and for a commit of all that is held. p_messages: the messages of all
-- CONSUMEs of the user. p_key_sums: the messages of those up to and including that request. p_hold_seconds: how long a
-- RESERVE holds, otherwise 0. A user also takes the slow path if the key of a CONSUME or a RESERVE was used before, if
-- that of a COMMIT or a RELEASE holds nothing in the period, or less than is to be committed, or in another window, and
-- with a key and balances. Nearly all keys of CONSUME and RESERVE are new, so they are not looked up: if inserting them
-- fails, the batch is rolled back, and counted again without the users whose keys exist. After unique_violation or
-- serialization_failure, another session has just written one of the keys: the caller sends the batch again.
--
-- p_plans: empty, or the plan of each user whose messages have parts, else null. p_part_users to p_part_window_seconds:
-- their limits (headroom.count_parts) in revision p_plan_revision of the plans. p_key_parts: null, or the parts of the
-- key as Engine's KeyParts has them before counting. Some users are left out and take the slow path: those whose plan
-- has changed since, and those whose messages do not fit into the limit of a part. The others are counted again.
create or replace function headroom.count_keyed_batch(
    p_bucket smallint, p_lane uuid, p_number bigint, p_users uuid[], p_periods text[], p_period_ordinals integer[],
    p_messages bigint[], p_entitlement_versions bigint[], p_keys text[], p_verbs text[], p_key_messages integer[],
    p_key_sums bigint[], p_hold_seconds integer[], p_key_parts text[], p_plan_revision integer, p_plans text[],
    p_part_users integer[], p_part_kinds text[], p_part_names text[], p_part_messages bigint[],
    p_part_limits integer[], p_part_window_limits integer[], p_part_window_seconds integer[], p_buckets_revision integer
) returns headroom.counted_batch
    language plpgsql
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_latest constant timestamptz := v_now + interval '1 hour';
    -- This is headroom.await_division, without a query.
    v_awaited constant boolean := pg_advisory_xact_lock_shared(hashtextextended('headroom.divide_users', 0)) is null;
    v_revision integer;
    v_buckets_revision integer;
    v_has_holds constant boolean := coalesce('consume' <> any(p_verbs), false);
    -- This is the number of messages of each user, if all have the same. Of COMMITs it is not known yet.
    v_equal_messages constant bigint
        := case when not v_has_holds and p_messages[1] = all(p_messages) then p_messages[1] end;
    v_has_one_period constant boolean := cardinality(p_periods) = 1 and 1 = all(p_period_ordinals);
    v_periods integer[] := p_period_ordinals;
    v_first_period text := p_periods[1];
    v_last_period text := v_first_period;
    -- headroom.look_up_keys explains these.
    v_users uuid[] := p_users;
    v_messages bigint[] := p_messages;
    v_holds bigint[];
    v_new bigint[] := p_messages;
    v_key_messages integer[];
    v_key_windows timestamptz[];
    v_hold_ends timestamptz[];
    v_reads_all_keys boolean := false;
    v_has_parts constant boolean := p_plans <> '{}';
    v_left_out uuid[] := '{}';
    v_key_parts jsonb[];
    v_plan text;
    v_enforced boolean;
    v_settles boolean;
    v_user uuid;
    v_ordinal integer;
    v_count integer;
    v_held integer;
    v_limit integer;
    v_generation bigint;
    v_entitlement_version bigint;
    v_window_opened_at timestamptz;
    v_window_count integer;
    v_window_held integer;
    v_window_limit integer;
    v_counted bigint[];
    v_returned_users uuid[];
    v_batch headroom.counted_batch;
    v_detail text;
begin
    select revised.revision, revised.words_revision, revised.buckets_revision
    into v_revision, v_batch.words_revision, v_buckets_revision
    from headroom.present_revisions as revised;
    if v_buckets_revision <> p_buckets_revision then
        raise exception 'the division of users into buckets has changed' using errcode = 'HR012';
    end if;
    if 0 = any(p_period_ordinals) then
        v_periods := headroom.usable_periods(p_bucket, p_users, p_periods, p_period_ordinals);
    end if;
    if cardinality(p_periods) > 1 then
        select min(period), max(period) into v_first_period, v_last_period from unnest(p_periods) as period;
    end if;
    loop
        declare
            -- These are users, as ordinals, whose keys end.
            v_settled integer[] := '{}';
            -- These are for each counted user with a key, but not that of a RELEASE: what the answer shows.
            v_used_of integer[];
            v_held_of integer[];
            v_limit_of integer[];
            v_generation_of bigint[];
            v_window_opened_at_of timestamptz[];
            v_window_used_of integer[];
            v_window_held_of integer[];
            v_window_limit_of integer[];
            v_enforced_of boolean[];
            -- The plans of these users have changed.
            v_changed uuid[] := '{}';
        begin
            v_ordinal := 0;
            v_counted := '{}';
            v_returned_users := '{}';
            if v_has_holds or v_reads_all_keys then
                select looked_up.* into v_users, v_messages, v_holds, v_new, v_key_messages, v_key_windows, v_hold_ends
                from headroom.look_up_keys(
                    p_bucket, p_users, p_periods, v_periods, p_messages, p_keys, p_verbs, p_key_messages,
                    p_hold_seconds, v_reads_all_keys, v_now
                ) as looked_up;
            end if;
            if v_left_out <> '{}' then
                v_users := array(select kept from unnest(v_users) as kept where kept <> all(v_left_out));
            end if;
            for v_user, v_count, v_held, v_limit, v_generation, v_entitlement_version, v_window_opened_at,
                v_window_count, v_window_held, v_window_limit, v_enforced, v_plan in
                update public.message_usage as usage
                set message_count = usage.message_count
                        + coalesce(v_equal_messages, v_messages[width_bucket(usage.user_id, p_users)]),
                    -- The element of a null array is null, and the index is not computed.
                    held = usage.held + coalesce(v_holds[width_bucket(usage.user_id, p_users)], 0),
                    usable_until = least(usage.usable_until, v_hold_ends[width_bucket(usage.user_id, p_users)]),
                    updated_at = v_now,
                    window_count = usage.window_count + case
                        when usage.window_limit is null then 0
                        else coalesce(v_equal_messages, v_messages[width_bucket(usage.user_id, p_users)])
                    end,
                    window_held = usage.window_held + case
                        when usage.window_limit is null then 0
                        else coalesce(v_holds[width_bucket(usage.user_id, p_users)], 0)
                    end
                where usage.bucket = p_bucket and usage.user_id = any(v_users)
                    and usage.billing_period >= v_first_period and usage.billing_period <= v_last_period
                    and (
                        v_has_one_period
                        or usage.billing_period = p_periods[v_periods[width_bucket(usage.user_id, p_users)]]
                    )
                    -- headroom.fits, as in count_batch
                    and (usage.extra is null or p_keys[width_bucket(usage.user_id, p_users)] is null)
                    and coalesce(v_equal_messages, v_new[width_bucket(usage.user_id, p_users)]) <= least(
                        coalesce(
                            usage.usable_count, case when usage.enforced is not false then usage."limit" end, 2147483647
                        )::bigint - usage.message_count - usage.held,
                        case
                            when usage.window_limit is null then null
                            when usage.window_ends_at > v_now then
                                case when usage.enforced is not false then usage.window_limit else 2147483647 end
                                - usage.window_count::bigint - usage.window_held
                            else -1
                        end
                    )
                    -- A hold that ends was made in the present window, or there is none.
                    and (
                        not v_has_holds or v_holds[width_bucket(usage.user_id, p_users)] >= 0
                        or least(usage.held, case when usage.window_limit is not null then usage.window_held end)
                            + v_holds[width_bucket(usage.user_id, p_users)] >= 0
                        and v_key_windows[width_bucket(usage.user_id, p_users)] is not distinct from case
                            when usage.window_limit is not null then usage.window_opened_at
                        end
                    )
                    -- headroom.is_usable
                    and usage.usable_until > v_now and usage.updated_at <= v_latest
                    and usage.plan_revision = v_revision
                    -- headroom.is_valid_usage_row
                    and least(
                        usage.message_count, usage.held, usage.released, usage.granted, usage."limit",
                        usage.plan_limit, usage.window_count, usage.window_held, usage.window_limit
                    ) >= 0
                    and least(usage.updated_at, usage.started_at, usage.resets_at, usage.expires_at)
                        >= '2000-01-01T00:00:00Z'
                    and greatest(usage.updated_at, usage.started_at, usage.resets_at, usage.expires_at)
                        < '10000-01-01T00:00:00Z'
                returning
                    usage.user_id, usage.message_count, usage.held, usage."limit", usage.generation,
                    usage.entitlement_version, usage.window_opened_at, usage.window_count, usage.window_held,
                    usage.window_limit, usage.enforced, usage.plan
            loop
                v_ordinal := v_ordinal + 1;
                if p_users[v_ordinal] is distinct from v_user then
                    v_ordinal := width_bucket(v_user, p_users);
                end if;
                if v_window_limit is not null then
                    v_counted := v_counted || ((v_ordinal::bigint << 32) | coalesce(v_window_count, 0));
                end if;
                v_counted := v_counted || ((v_periods[v_ordinal]::bigint << 48) | (v_ordinal::bigint << 32) | v_count);
                v_settles := v_has_holds and p_verbs[v_ordinal] in ('commit', 'release');
                if v_entitlement_version is distinct from p_entitlement_versions[v_ordinal]
                    or greatest(v_held, v_window_held) > 0 or v_settles then
                    v_returned_users := v_returned_users || v_user;
                end if;
                if v_has_parts then
                    v_enforced_of[v_ordinal] := v_enforced is not false;
                    if p_plans[v_ordinal] <> coalesce(case when p_plan_revision = v_revision then v_plan end, '') then
                        v_changed := v_changed || v_user;
                    end if;
                end if;
                continue when p_keys[v_ordinal] is null;
                if v_settles then
                    v_settled := v_settled || v_ordinal;
                    continue when p_verbs[v_ordinal] = 'release';
                end if;
                v_used_of[v_ordinal] := v_count - p_messages[v_ordinal] + p_key_sums[v_ordinal];
                v_limit_of[v_ordinal] := v_limit;
                v_generation_of[v_ordinal] := v_generation;
                v_held_of[v_ordinal] := nullif(v_held, 0);
                if v_window_limit is not null then
                    v_window_opened_at_of[v_ordinal] := v_window_opened_at;
                    v_window_used_of[v_ordinal] := v_window_count - p_messages[v_ordinal] + p_key_sums[v_ordinal];
                    v_window_held_of[v_ordinal] := v_window_held;
                    v_window_limit_of[v_ordinal] := v_window_limit;
                end if;
            end loop;

            if v_changed <> '{}' then
                raise exception 'plans have changed' using errcode = 'HR014', detail = v_changed::text;
            elsif v_has_parts then
                select counted.counted_parts, counted.key_parts into v_batch.parts, v_key_parts
                from headroom.count_parts(
                    p_bucket, p_users, p_periods, v_periods, p_part_users, p_part_kinds, p_part_names, p_part_messages,
                    p_part_limits, p_part_window_limits, p_part_window_seconds, v_enforced_of, p_key_parts, v_now
                ) as counted;
            end if;
            if v_used_of is not null or v_settled <> '{}' then
                perform headroom.write_keys(
                    p_bucket, p_users, p_periods, v_periods, p_keys, p_verbs, p_key_messages, v_settled,
                    v_key_messages, v_hold_ends, v_generation_of, v_used_of, v_held_of, v_limit_of,
                    v_window_opened_at_of, v_window_used_of, v_window_held_of, v_window_limit_of, v_key_parts, v_now
                );
            end if;
            exit;
        exception
            -- Citus reports a row that another server refuses so.
            when unique_violation or internal_error then
                if v_reads_all_keys then
                    raise;
                end if;
                v_reads_all_keys := true;
            when sqlstate 'HR014' then
                get stacked diagnostics v_detail = pg_exception_detail;
                v_left_out := v_left_out || v_detail::uuid[];
        end;
    end loop;

    v_batch.counts := headroom.write_counts(p_bucket, p_lane, p_number, v_counted, v_now);
    v_batch.observed_at := v_now;
    v_batch.usage_rows := case when v_returned_users <> '{}' then headroom.counted_rows(
        p_bucket, p_users, p_periods, v_periods, v_returned_users, v_key_messages
    ) end;
    return v_batch;
end
$$;
