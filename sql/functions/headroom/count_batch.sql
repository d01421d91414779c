-- Counts a batch of messages of one bucket, one usage row per user, exactly once for each number of a lane. Returns
-- what was counted, and no row if this number was already counted. Locks the lane's receipt, then the usage rows in
-- ascending order of user_id.
--
-- p_users is ascending without duplicates. Each of the other arrays has one element per user. p_period_ordinals: the
-- ordinal in p_periods of the period in which the row is expected; 0 if the caller does not know it, then the user's
-- usable row in one of p_periods is counted in. p_messages: the number of messages to count.
-- p_entitlement_versions: the entitlement_version that the caller has cached; the smallest bigint, which no row has, if
-- none. p_keys: null, or the key of at most one request per user; p_key_messages: the messages of that request;
-- p_key_sums: the messages of the user's requests up to and including that request.
--
-- The first row contains all counts, as ordinal of the period * 2^48 + ordinal of the user * 2^32 + message_count. One
-- more row follows for each user whose cached entitlement is out of date, or who holds messages. A user missing from
-- the counts was not counted (no row, another period, limit reached, no access, outdated row, or a used key) and takes
-- the slow path: headroom.perform_batch.
--
-- Each statement uses one table, so that a distributed database can execute it
-- (docs/decisions/0026-sql-for-a-distributed-database.md). "= any" walks the index once in its order, which is the
-- order of the locks (docs/decisions/0003-lock-order.md). The conditions are in the WHERE clause of the UPDATE, which
-- PostgreSQL evaluates again on the newest row after it has waited for a lock.
create or replace function headroom.count_batch(
    p_bucket smallint, p_lane uuid, p_number bigint, p_users uuid[], p_periods text[], p_period_ordinals integer[],
    p_messages bigint[], p_entitlement_versions bigint[], p_keys text[] default null,
    p_key_messages integer[] default null, p_key_sums bigint[] default null
) returns setof headroom.count_batch_row
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    -- The slow path corrects a row that is dated later: it was written while the clock was ahead.
    v_latest constant timestamptz := v_now + interval '1 hour';
    v_revision integer;
    -- Nearly all batches have one number of messages and one period. Looking up the element of each row takes a tenth
    -- of the time.
    v_messages constant bigint := case when p_messages[1] = all(p_messages) then p_messages[1] end;
    v_has_one_period constant boolean := cardinality(p_periods) = 1 and 1 = all(p_period_ordinals);
    v_period_ordinals integer[] := p_period_ordinals;
    v_period text;
    v_users uuid[] := p_users;
    v_user uuid;
    v_ordinal integer := 0;
    v_count integer;
    v_held integer;
    v_limit integer;
    v_generation bigint;
    v_entitlement_version bigint;
    v_counted bigint[] := '{}';
    -- The users that get a row of their own.
    v_returned_users uuid[] := '{}';
    v_key_ordinals integer[] := '{}';
    v_key_counts integer[] := '{}';
    v_key_held integer[] := '{}';
    v_key_limits integer[] := '{}';
    v_key_generations bigint[] := '{}';
begin
    -- No row if this number was already counted, over a connection that was then lost.
    perform from headroom.lane_receipts as receipt
    where receipt.bucket = p_bucket and receipt.lane = p_lane and receipt.number = p_number - 1
    for update;
    if not found then
        return;
    end if;
    select revised.revision into v_revision from headroom.plan_revision as revised;
    if 0 = any(p_period_ordinals) then
        -- A user has at most one usable row, so this finds the user's period. A user with several, after the clock was
        -- set back for example, gets the ordinal -1, which no row has, and takes the slow path.
        for v_user, v_period in
            select usage.user_id, usage.billing_period from public.message_usage as usage
            where usage.bucket = p_bucket and usage.billing_period = any(p_periods)
                and usage.user_id = any((
                    select array_agg(request.user_id)
                    from unnest(p_users, p_period_ordinals) as request (user_id, period_ordinal)
                    where request.period_ordinal = 0
                )::uuid[])
                and usage.usable_until > v_now
        loop
            v_ordinal := width_bucket(v_user, p_users);
            v_period_ordinals[v_ordinal] := case v_period_ordinals[v_ordinal]
                when 0 then array_position(p_periods, v_period) else -1
            end;
        end loop;
        v_ordinal := 0;
    end if;
    if p_keys is not null then
        -- Two sessions with the same new key both insert it below. The second session waits for the first and then
        -- fails with unique_violation. When it sends the batch again, it finds the key here.
        --
        -- A scalar subquery, because a join would read all keys if the table was small when it was last analyzed.
        select coalesce(array_agg(request.user_id) filter (where not request.is_used), '{}') into v_users
        from (
            select keyed.user_id, (
                select true from headroom.message_keys as keys
                where keys.bucket = p_bucket and keys.user_id = keyed.user_id and keys.key = keyed.key
            ) is not null as is_used
            from unnest(p_users, p_keys) as keyed (user_id, key)
        ) as request;
    end if;

    for v_user, v_count, v_held, v_limit, v_generation, v_entitlement_version in
        update public.message_usage as usage
        set message_count = usage.message_count
                + coalesce(v_messages, p_messages[width_bucket(usage.user_id, p_users)]),
            updated_at = v_now
        where usage.bucket = p_bucket and usage.user_id = any(v_users) and usage.billing_period = any(p_periods)
            and (
                v_has_one_period
                or usage.billing_period = p_periods[v_period_ordinals[width_bucket(usage.user_id, p_users)]]
            )
            and coalesce(v_messages, p_messages[width_bucket(usage.user_id, p_users)])
                + usage.message_count + usage.held <= coalesce(usage."limit", 2147483647)
            and usage.usable_until > v_now and usage.updated_at <= v_latest
            and usage.plan_revision = v_revision
            -- Values that the constraints forbid. The slow path raises an error for such a row.
            and usage.message_count >= 0 and usage.held >= 0 and headroom.is_instant(usage.started_at)
            and headroom.is_instant(usage.resets_at) and headroom.is_instant(usage.expires_at)
        returning
            usage.user_id, usage.message_count, usage.held, usage."limit", usage.generation, usage.entitlement_version
    loop
        -- Nearly always the next one. An adopted table's index may begin with billing_period; then all rows of one
        -- period come before those of the next.
        v_ordinal := v_ordinal + 1;
        if p_users[v_ordinal] is distinct from v_user then
            v_ordinal := width_bucket(v_user, p_users);
        end if;
        v_counted := v_counted
            || ((v_period_ordinals[v_ordinal]::bigint << 48) | (v_ordinal::bigint << 32) | v_count);
        if v_entitlement_version is distinct from p_entitlement_versions[v_ordinal] or v_held > 0 then
            v_returned_users := v_returned_users || v_user;
        end if;
        if p_keys[v_ordinal] is not null then
            v_key_ordinals := v_key_ordinals || v_ordinal;
            v_key_counts := v_key_counts || v_count;
            v_key_held := v_key_held || v_held;
            v_key_limits := v_key_limits || v_limit;
            v_key_generations := v_key_generations || v_generation;
        end if;
    end loop;

    if v_key_ordinals <> '{}' then
        insert into headroom.message_keys (
            bucket, user_id, created_at, generation, messages, used, held, "limit", verb, status, billing_period, key
        )
        select
            p_bucket, p_users[counted.ordinal], v_now, counted.generation, p_key_messages[counted.ordinal],
            counted.message_count - p_messages[counted.ordinal] + p_key_sums[counted.ordinal], counted.held,
            counted."limit", 'c', 'c', p_periods[v_period_ordinals[counted.ordinal]], p_keys[counted.ordinal]
        from unnest(v_key_ordinals, v_key_counts, v_key_held, v_key_limits, v_key_generations)
            as counted (ordinal, message_count, held, "limit", generation);
    end if;
    update headroom.lane_receipts as receipt
    set number = p_number, counts = v_counted, answers = null, updated_at = v_now
    where receipt.bucket = p_bucket and receipt.lane = p_lane;
    return query select
        null::integer, null::integer, null::integer, null::integer, null::text, null::text, null::timestamptz,
        null::timestamptz, null::timestamptz, null::text, null::boolean, null::integer, v_now, null::bigint, v_counted;
    if v_returned_users <> '{}' then
        return query
        select
            width_bucket(usage.user_id, p_users), usage.message_count, usage.held, usage."limit", usage.plan,
            usage.state, usage.started_at, usage.resets_at, usage.expires_at, usage.previous_plan, usage.renews,
            usage.plan_revision, v_now, usage.entitlement_version, null::bigint[]
        from public.message_usage as usage
        where usage.bucket = p_bucket and usage.user_id = any(v_returned_users)
            and usage.billing_period = any(p_periods)
            and usage.billing_period = p_periods[v_period_ordinals[width_bucket(usage.user_id, p_users)]];
    end if;
end
$$;
