-- Counts messages of users whose usage row is not usable: of new users, in a new period, and after an edit of the plan.
-- Parameters and result are those of headroom.count_batch, and so are its errors; each counted user has a row. Locks
-- the subscribers in ascending order, then the usage rows, then the lane's receipt. The service decides each request of
-- a user who is missing from the counts (headroom.lock_and_read_users): these are refused, have holds or a window, have
-- spent something before they were forgotten, have no subscription, or have rows that are to be corrected.
--
-- It counts users of one kind, and leaves those of the next one to the next call: after an edit, rows that only need
-- the plan's new allowance; then other users with a subscriber; then new users. Rows of two kinds would not be locked
-- in ascending order, and a session that waits for another one to create a subscriber must not hold locks of other
-- users (docs/decisions/0003-lock-order.md). Raises unique_violation or serialization_failure if another session has
-- created rows of a new user meanwhile.
create or replace function headroom.derive_and_count(
    p_bucket smallint, p_lane uuid, p_number bigint, p_users uuid[], p_periods text[], p_period_ordinals integer[],
    p_messages bigint[], p_entitlement_versions bigint[], p_buckets_revision integer
) returns headroom.counted_batch
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_policy constant text := headroom.unknown_users_policy();
    -- This is headroom.await_division, without a query.
    v_has_awaited constant boolean
        := pg_advisory_xact_lock_shared(hashtextextended('headroom.divide_users', 0)) is null;
    v_revision integer;
    v_buckets_revision integer;
    -- The users with a subscriber.
    v_known uuid[];
    -- The counted users. Each of the other arrays has one element for each.
    v_users uuid[];
    v_periods text[];
    v_message_counts integer[];
    v_is_first boolean[];
    v_ordinal integer := 0;
    v_period_ordinals integer[] := p_period_ordinals;
    v_counted bigint[] := '{}';
    v_batch headroom.counted_batch;
begin
    select revised.revision, revised.words_revision, revised.buckets_revision
    into v_revision, v_batch.words_revision, v_buckets_revision
    from headroom.present_revisions as revised;
    if v_buckets_revision <> p_buckets_revision then
        raise exception 'the division of users into buckets has changed' using errcode = 'HR012';
    end if;
    v_known := headroom.lock_subscribers_of(p_bucket, p_users);
    if v_known = '{}' then
        select array_agg(counted.user_id), array_agg(counted.billing_period), array_agg(counted.message_count)
        into v_users, v_periods, v_message_counts
        from headroom.count_new_users(p_bucket, p_users, p_messages, p_periods, v_now, v_policy) as counted;
    else
        if exists (
            select from public.message_usage as usage
            where usage.bucket = p_bucket and usage.user_id = v_known[1] and usage.billing_period = any(p_periods)
                and usage.usable_until > v_now and usage.plan_revision < v_revision
        ) then
            select array_agg(counted.user_id), array_agg(counted.billing_period), array_agg(counted.message_count)
            into v_users, v_periods, v_message_counts
            from headroom.count_edited_rows(
                p_bucket, v_known, p_users, p_messages, p_periods, v_revision, v_now
            ) as counted;
        end if;
        if v_users is null then
            select
                array_agg(counted.user_id), array_agg(counted.billing_period), array_agg(counted.message_count),
                array_agg(counted.message_count = p_messages[width_bucket(counted.user_id, p_users)])
            into v_users, v_periods, v_message_counts, v_is_first
            from headroom.count_derived_rows(
                p_bucket,
                array(select derived from headroom.entitlements(p_bucket, v_known, v_now, v_policy) as derived),
                p_users, p_messages, p_periods, v_now
            ) as counted;
            -- A row with no other messages may be the first one of its period.
            if true = any(v_is_first) then
                perform headroom.end_earlier_periods(
                    p_bucket, array_agg(first.user_id), array_agg(first.billing_period)
                )
                from unnest(v_users, v_periods, v_is_first) as first (user_id, billing_period, is_first)
                where first.is_first;
            end if;
        end if;
    end if;
    for v_index in 1 .. coalesce(cardinality(v_users), 0) loop
        -- It is nearly always the next one.
        v_ordinal := v_ordinal + 1;
        if p_users[v_ordinal] is distinct from v_users[v_index] then
            v_ordinal := width_bucket(v_users[v_index], p_users);
        end if;
        v_period_ordinals[v_ordinal] := array_position(p_periods, v_periods[v_index]);
        v_counted := v_counted || (
            (v_period_ordinals[v_ordinal]::bigint << 48) | (v_ordinal::bigint << 32) | v_message_counts[v_index]
        );
    end loop;
    v_batch.counts := headroom.write_counts(p_bucket, p_lane, p_number, v_counted, v_now);
    v_batch.observed_at := v_now;
    if v_counted <> '{}' then
        v_batch.usage_rows := headroom.counted_rows(
            p_bucket, p_users, p_periods, v_period_ordinals, v_users, null
        );
    end if;
    return v_batch;
end
$$;
