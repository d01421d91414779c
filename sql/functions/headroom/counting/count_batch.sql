-- Counts a batch of messages of one bucket, one usage row per user, exactly once for each number of a lane, and returns
-- what was counted. Raises HR013 if this number was already counted, and HR001 if the receipt is at another number
-- (headroom.raise_other_receipt); then nothing is counted. Locks the usage rows in ascending order of user_id, then the
-- lane's receipt.
--
-- p_users is ascending without duplicates. Each of the other arrays has one element per user. p_period_ordinals: the
-- ordinal in p_periods of the period in which the row is expected; if it is 0, because the caller does not know it, the
-- user's usable row in one of p_periods is counted in. p_messages: the number of messages to count.
-- p_entitlement_versions: the entitlement_version that the caller has cached; if none, the smallest bigint, which no
-- row has. p_buckets_revision: the revision of headroom.bucket_map by which the caller knows p_bucket. Raises HR012 if
-- that is not the present one.
--
-- It returns all counts, as ordinal of the period * 2^48 + ordinal of the user * 2^32 + message_count. If a user's plan
-- has a window, its window_count comes before, with 0 as ordinal of the period. With them comes the usage row of each
-- user whose cached entitlement is out of date, or who holds messages. A user missing from the counts was not counted
-- (no row, another period, no open window, limit reached, no access, or outdated row) and takes the slow path:
-- headroom.lock_and_read_users.
--
-- It sets no search_path, which would take a tenth of the time of a small batch: the service's sessions have it
-- (docs/contributors/security.md). Each statement uses one table, so that a distributed database can execute it
-- (docs/decisions/0026-sql-for-a-distributed-database.md). "= any" walks the index once in its order, which is the
-- order of the locks (docs/decisions/0003-lock-order.md). The conditions are in the WHERE clause of the UPDATE, which
-- PostgreSQL evaluates again on the newest row after it has waited for a lock. Those of some functions are written out,
-- because Citus inlines the functions again in each execution (docs/decisions/0041-sql-that-citus-can-plan.md).
create or replace function headroom.count_batch(
    p_bucket smallint, p_lane uuid, p_number bigint, p_users uuid[], p_periods text[], p_period_ordinals integer[],
    p_messages bigint[], p_entitlement_versions bigint[], p_buckets_revision integer
) returns headroom.counted_batch
    language plpgsql
as $$
declare
    v_now constant timestamptz := headroom.now();
    -- A row with a later date was written while the clock was ahead (headroom.is_usable).
    v_latest constant timestamptz := v_now + interval '1 hour';
    -- This is headroom.await_division, without a query.
    v_has_awaited constant boolean
        := pg_advisory_xact_lock_shared(hashtextextended('headroom.divide_users', 0)) is null;
    v_revision integer;
    v_buckets_revision integer;
    -- Nearly all batches have one number of messages and one period. Looking up the element of each row takes a tenth
    -- of the time.
    v_messages constant bigint := case when p_messages[1] = all(p_messages) then p_messages[1] end;
    v_has_one_period constant boolean := cardinality(p_periods) = 1 and 1 = all(p_period_ordinals);
    v_period_ordinals integer[] := p_period_ordinals;
    v_first_period text := p_periods[1];
    v_last_period text := v_first_period;
    v_user uuid;
    v_ordinal integer := 0;
    v_count integer;
    v_held integer;
    v_window_count integer;
    v_window_limit integer;
    v_entitlement_version bigint;
    v_counted bigint[] := '{}';
    -- These users get a row of their own.
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
        v_period_ordinals := headroom.usable_periods(p_bucket, p_users, p_periods, p_period_ordinals);
    end if;
    if cardinality(p_periods) > 1 then
        select min(period), max(period) into v_first_period, v_last_period from unnest(p_periods) as period;
    end if;
    for v_user, v_count, v_held, v_entitlement_version, v_window_count, v_window_limit in
        update public.message_usage as usage
        set message_count = usage.message_count
                + coalesce(v_messages, p_messages[width_bucket(usage.user_id, p_users)]),
            updated_at = v_now,
            window_count = case
                when usage.window_limit is null then usage.window_count
                else usage.window_count + coalesce(v_messages, p_messages[width_bucket(usage.user_id, p_users)])
            end
        where usage.bucket = p_bucket and usage.user_id = any(p_users)
            -- The index skips other periods of the user by these two.
            and usage.billing_period >= v_first_period and usage.billing_period <= v_last_period
            and (
                v_has_one_period
                or usage.billing_period = p_periods[v_period_ordinals[width_bucket(usage.user_id, p_users)]]
            )
            -- headroom.fits, as the number of messages that fit. LEAST skips the window's null.
            and coalesce(v_messages, p_messages[width_bucket(usage.user_id, p_users)]) <= least(
                coalesce(
                    usage.usable_count, case when usage.enforced is not false then usage."limit" end, 2147483647
                )::bigint
                - usage.message_count - usage.held,
                case
                    when usage.window_limit is null then null
                    when usage.window_ends_at > v_now then
                        case when usage.enforced is not false then usage.window_limit else 2147483647 end::bigint
                        - usage.window_count - usage.window_held
                    else -1
                end
            )
            -- headroom.is_usable
            and usage.usable_until > v_now and usage.updated_at <= v_latest and usage.plan_revision = v_revision
            -- This is headroom.is_valid_usage_row. The slow path raises an error for an invalid row.
            and least(
                usage.message_count, usage.held, usage.released, usage.granted, usage."limit", usage.plan_limit,
                usage.window_count, usage.window_held, usage.window_limit
            ) >= 0
            and least(usage.updated_at, usage.started_at, usage.resets_at, usage.expires_at) >= '2000-01-01T00:00:00Z'
            and greatest(usage.updated_at, usage.started_at, usage.resets_at, usage.expires_at)
                < '10000-01-01T00:00:00Z'
        returning
            usage.user_id, usage.message_count, greatest(usage.held, usage.window_held), usage.entitlement_version,
            usage.window_count, usage.window_limit
    loop
        -- It is nearly always the next one. An adopted table's index may begin with billing_period; then all rows of
        -- one period come before those of the next.
        v_ordinal := v_ordinal + 1;
        if p_users[v_ordinal] is distinct from v_user then
            v_ordinal := width_bucket(v_user, p_users);
        end if;
        if v_window_limit is not null then
            v_counted := v_counted || ((v_ordinal::bigint << 32) | coalesce(v_window_count, 0));
        end if;
        v_counted := v_counted
            || ((v_period_ordinals[v_ordinal]::bigint << 48) | (v_ordinal::bigint << 32) | v_count);
        if v_entitlement_version is distinct from p_entitlement_versions[v_ordinal] or v_held > 0 then
            v_returned_users := v_returned_users || v_user;
        end if;
    end loop;

    v_batch.counts := headroom.write_counts(p_bucket, p_lane, p_number, v_counted, v_now);
    v_batch.observed_at := v_now;
    if v_returned_users <> '{}' then
        v_batch.usage_rows := headroom.counted_rows(
            p_bucket, p_users, p_periods, v_period_ordinals, v_returned_users, null
        );
    end if;
    return v_batch;
end
$$;
