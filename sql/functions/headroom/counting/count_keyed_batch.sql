-- Counts a batch in which requests have keys: CONSUME, and RESERVE, COMMIT and RELEASE of held messages. It works as
-- headroom.count_batch does, with these differences.
--
-- p_keys: null, or the key of at most one request per user. p_verbs: that request: consume, reserve, commit or release.
-- p_key_messages: its messages; null for release, and for a commit of all that is held. p_messages: the messages of all
-- CONSUMEs of the user. p_key_sums: the messages of those up to and including that request. p_hold_seconds: how long a
-- RESERVE holds, otherwise 0.
--
-- A user also takes the slow path if the key of a CONSUME or a RESERVE was used before, or if that of a COMMIT or a
-- RELEASE holds nothing in the period, or less than is to be committed, or was held in another window than the present
-- one.
create or replace function headroom.count_keyed_batch(
    p_bucket smallint, p_lane uuid, p_number bigint, p_users uuid[], p_periods text[], p_period_ordinals integer[],
    p_messages bigint[], p_entitlement_versions bigint[], p_keys text[], p_verbs text[], p_key_messages integer[],
    p_key_sums bigint[], p_hold_seconds integer[], p_buckets_revision integer
) returns headroom.counted_batch
    language plpgsql
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_latest constant timestamptz := v_now + interval '1 hour';
    -- This is headroom.await_division, without a query.
    v_has_awaited constant boolean
        := pg_advisory_xact_lock_shared(hashtextextended('headroom.divide_users', 0)) is null;
    v_revision integer;
    v_buckets_revision integer;
    v_periods integer[] := p_period_ordinals;
    v_first_period text := p_periods[1];
    v_last_period text := v_first_period;
    v_has_holds constant boolean := p_verbs && '{reserve,commit,release}';
    v_users uuid[];
    -- These are for each user: the messages to count, to add to the held ones, to check against the limit, and those
    -- that the key holds or is to have.
    v_messages bigint[] := p_messages;
    v_holds bigint[];
    v_new bigint[] := p_messages;
    v_key_messages integer[];
    -- This is the window of a COMMIT's or a RELEASE's hold.
    v_key_windows timestamptz[];
    -- This is when the user's new hold ends; null without one. It is computed before the UPDATE, because Citus sends
    -- none that adds an interval to a time.
    v_hold_ends timestamptz[];
    v_row record;
    v_ordinal integer;
    v_counted bigint[] := '{}';
    v_keys headroom.counted_key[] := '{}';
    v_returned_users uuid[] := '{}';
    v_batch headroom.counted_batch;
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
    if 0 <> any(p_hold_seconds) then
        v_hold_ends := array(
            select case when holds.seconds > 0 then v_now + make_interval(secs => holds.seconds) end
            from unnest(p_hold_seconds) with ordinality as holds (seconds, ordinal)
            order by holds.ordinal
        );
    end if;
    -- The keys are read without a lock: if another session changes a key before this one has locked the usage row,
    -- writing the key fails below, and the batch is sent again. LIMIT keeps the queries from becoming a join, which
    -- would read all keys if the table was small when it was last analyzed.
    if not v_has_holds then
        v_holds := array_fill(0::bigint, array[cardinality(p_users)]);
        select array_agg(request.user_id) into v_users
        from unnest(p_users, p_keys) as request (user_id, key)
        left join lateral (
            select true as is_used from headroom.message_keys as keys
            where keys.bucket = p_bucket and keys.user_id = request.user_id and keys.key = request.key
            limit 1
        ) as used on true
        where used.is_used is null;
    else
        select
            array_agg(request.user_id) filter (
                where case
                    when request.verb in ('commit', 'release')
                        then
                        used.is_held and used.billing_period = p_periods[request.period]
                        and coalesce(request.key_messages, 0) <= used.messages
                    else used.messages is null
                end
            ),
            array_agg(
                request.messages
                + case request.verb when 'commit' then coalesce(request.key_messages, used.messages, 0) else 0 end
            ),
            array_agg(case request.verb
                when 'reserve' then request.key_messages when 'consume' then 0 else -coalesce(used.messages, 0)
            end),
            array_agg(request.messages + case request.verb when 'reserve' then request.key_messages else 0 end),
            array_agg(coalesce(used.messages, request.key_messages)),
            array_agg(used.window_opened_at)
        into v_users, v_messages, v_holds, v_new, v_key_messages, v_key_windows
        from unnest(p_users, v_periods, p_messages, p_keys, p_verbs, p_key_messages)
            as request (user_id, period, messages, key, verb, key_messages)
        left join lateral (
            select
                keys.messages, keys.billing_period, keys.window_opened_at,
                keys.verb = 'r' and keys.status = 'h' and keys.expires_at > v_now as is_held
            from headroom.message_keys as keys
            where keys.bucket = p_bucket and keys.user_id = request.user_id and keys.key = request.key
            limit 1
        ) as used on true;
    end if;

    for v_row in
        update public.message_usage as usage
        set message_count = usage.message_count + v_messages[width_bucket(usage.user_id, p_users)],
            held = usage.held + v_holds[width_bucket(usage.user_id, p_users)],
            usable_until = least(usage.usable_until, v_hold_ends[width_bucket(usage.user_id, p_users)]),
            updated_at = v_now,
            window_count = case
                when usage.window_limit is null then usage.window_count
                else usage.window_count + v_messages[width_bucket(usage.user_id, p_users)]
            end,
            window_held = case
                when usage.window_limit is null then usage.window_held
                else usage.window_held + v_holds[width_bucket(usage.user_id, p_users)]
            end
        where usage.bucket = p_bucket and usage.user_id = any(v_users)
            and usage.billing_period >= v_first_period and usage.billing_period <= v_last_period
            and usage.billing_period = p_periods[v_periods[width_bucket(usage.user_id, p_users)]]
            -- headroom.fits, as in count_batch
            and v_new[width_bucket(usage.user_id, p_users)] <= least(
                coalesce(case when usage.enforced is not false then usage."limit" end, 2147483647)::bigint
                - usage.message_count - usage.held,
                case
                    when usage.window_limit is null then null
                    when usage.window_ends_at > v_now then
                        case when usage.enforced is not false then usage.window_limit else 2147483647 end::bigint
                        - usage.window_count - usage.window_held
                    else -1
                end
            )
            -- A hold that ends was made in the present window, or there is none.
            and (
                not v_has_holds
                or least(usage.held, case when usage.window_limit is not null then usage.window_held end)
                    + v_holds[width_bucket(usage.user_id, p_users)] >= 0
                and (
                    v_holds[width_bucket(usage.user_id, p_users)] >= 0 and usage.window_limit is not null
                    or v_key_windows[width_bucket(usage.user_id, p_users)]
                        is not distinct from case when usage.window_limit is not null then usage.window_opened_at end
                )
            )
            -- headroom.is_usable
            and usage.usable_until > v_now and usage.updated_at <= v_latest and usage.plan_revision = v_revision
            -- headroom.is_valid_usage_row
            and least(
                usage.message_count, usage.held, usage.released, usage.granted, usage."limit", usage.plan_limit,
                usage.window_count, usage.window_held, usage.window_limit
            ) >= 0
            and least(usage.updated_at, usage.started_at, usage.resets_at, usage.expires_at) >= '2000-01-01T00:00:00Z'
            and greatest(usage.updated_at, usage.started_at, usage.resets_at, usage.expires_at)
                < '10000-01-01T00:00:00Z'
        returning
            usage.user_id, usage.billing_period, usage.message_count, usage.held, usage."limit", usage.generation,
            usage.entitlement_version, usage.window_opened_at, usage.window_count, usage.window_held,
            usage.window_limit
    loop
        v_ordinal := width_bucket(v_row.user_id, p_users);
        if v_row.window_limit is not null then
            v_counted := v_counted || ((v_ordinal::bigint << 32) | coalesce(v_row.window_count, 0));
        end if;
        v_counted := v_counted
            || ((v_periods[v_ordinal]::bigint << 48) | (v_ordinal::bigint << 32) | v_row.message_count);
        if v_row.entitlement_version is distinct from p_entitlement_versions[v_ordinal]
            or greatest(v_row.held, v_row.window_held) > 0
            or p_verbs[v_ordinal] in ('commit', 'release') then
            v_returned_users := v_returned_users || v_row.user_id;
        end if;
        if p_keys[v_ordinal] is not null then
            v_keys := v_keys || row(
                v_row.user_id, p_keys[v_ordinal], p_verbs[v_ordinal],
                coalesce(p_key_messages[v_ordinal], v_key_messages[v_ordinal]),
                v_row.message_count - p_messages[v_ordinal] + p_key_sums[v_ordinal], v_row.held, v_row."limit",
                v_row.generation, v_row.billing_period, p_hold_seconds[v_ordinal],
                case when v_row.window_limit is not null then v_row.window_opened_at end,
                case
                    when v_row.window_limit is not null
                        then v_row.window_count - p_messages[v_ordinal] + p_key_sums[v_ordinal]
                end,
                case when v_row.window_limit is not null then v_row.window_held end, v_row.window_limit
            )::headroom.counted_key;
        end if;
    end loop;

    perform headroom.write_counted_keys(p_bucket, v_keys, v_has_holds, v_now);
    update headroom.lane_receipts as receipt
    set number = p_number, counts = v_counted, answers = null, updated_at = v_now
    where receipt.bucket = p_bucket and receipt.lane = p_lane and receipt.number = p_number - 1;
    if not found then
        perform headroom.raise_other_receipt(p_bucket, p_lane, p_number);
    end if;
    v_batch.counts := v_counted;
    v_batch.observed_at := v_now;
    if v_returned_users <> '{}' then
        v_batch.usage_rows := headroom.counted_rows(
            p_bucket, p_users, p_periods, v_periods, v_returned_users, v_key_messages
        );
    end if;
    return v_batch;
end
$$;
