-- Counts a batch of messages of one bucket, one row per user, exactly once for each number of a lane, and returns what was
-- counted. Nothing at all when this number was counted before.
--
-- p_users ascend, each is there once; the arrays that follow have an element for each of them. p_period_ordinals: which of
-- p_periods the user's row is expected in. p_messages: how many to count. p_entitlement_versions: the entitlement_version under which the
-- caller knows the user's terms; the least bigint, which no row has, is none. Null, or of each user at most one request with a
-- key: p_keys, its messages, and p_so_far, the messages of the user's requests up to and including that one.
--
-- The first row has the counts, place in the arrays * 2^32 + message_count. A row follows for each user whose terms the
-- caller does not know, or who holds messages. Who is missing from the counts was not counted (no row, another period,
-- blocked, lapsed, out of date, or a key that was used before) and takes the slow path: headroom.perform_batch.
--
-- Plain statements on one table each, which a distributed database can carry out
-- (docs/decisions/0026-sql-for-a-distributed-database.md). Rows are locked in the order of their index, which "= any" walks once,
-- sorted (docs/decisions/0003-lock-order.md). The check stands in the UPDATE's own WHERE, which is evaluated again on the
-- newest row after waiting for a lock.
create or replace function headroom.count_batch(
    p_bucket smallint, p_lane uuid, p_number bigint, p_users uuid[], p_periods text[], p_period_ordinals integer[], p_messages bigint[],
    p_entitlement_versions bigint[], p_keys text[] default null, p_key_messages integer[] default null, p_so_far bigint[] default null
) returns setof headroom.count_batch_row
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_revision integer;
    -- Nearly all batches have one number and one period: looking each row's up by its place takes a tenth of the time.
    v_messages constant bigint := case when p_messages[1] = all (p_messages) then p_messages[1] end;
    v_has_one_period constant boolean := cardinality(p_periods) = 1;
    v_users uuid[] := p_users;
    v_user uuid;
    v_place integer := 0;
    v_count integer;
    v_held integer;
    v_limit integer;
    v_generation bigint;
    v_entitlement_version bigint;
    v_counted bigint[] := '{}';
    v_news uuid[] := '{}';
    v_key_places integer[] := '{}';
    v_key_counts integer[] := '{}';
    v_key_helds integer[] := '{}';
    v_key_limits integer[] := '{}';
    v_key_generations bigint[] := '{}';
begin
    -- Closed when this number was already counted, by a connection that was lost.
    perform from headroom.lane_receipts as receipt
    where receipt.bucket = p_bucket and receipt.lane = p_lane and receipt.number = p_number - 1
    for update;
    if not found then
        return;
    end if;
    select revised.revision into v_revision from headroom.plan_revision as revised;
    if p_keys is not null then
        -- Two sessions with the same new key both insert it below: the second waits for the first and fails as a whole, with
        -- unique_violation. Sent again, it finds the key here.
        -- Not as a join: over a table that was small when it was analyzed, that would read all keys.
        select coalesce(array_agg(request.user_id) filter (where not request.is_used), '{}') into v_users
        from (
            select asked.user_id, (
                select true from headroom.message_keys as keys
                where keys.bucket = p_bucket and keys.user_id = asked.user_id and keys.key = asked.key
            ) is not null as is_used
            from unnest(p_users, p_keys) as asked (user_id, key)
        ) as request;
    end if;

    for v_user, v_count, v_held, v_limit, v_generation, v_entitlement_version in
        update public.message_usage as usage
        set message_count = usage.message_count
                + coalesce(v_messages, p_messages[width_bucket(usage.user_id, p_users)]),
            updated_at = v_now
        where usage.bucket = p_bucket and usage.user_id = any (v_users) and usage.billing_period = any (p_periods)
            and (v_has_one_period or usage.billing_period = p_periods[p_period_ordinals[width_bucket(usage.user_id, p_users)]])
            and coalesce(v_messages, p_messages[width_bucket(usage.user_id, p_users)])
                + usage.message_count + usage.held <= coalesce(usage."limit", 2147483647)
            and usage.usable_until > v_now
            and usage.plan_revision = v_revision
            -- What no constraint allows and no answer can show: headroom.perform says what is wrong with such a row.
            and usage.message_count >= 0 and usage.held >= 0 and headroom.is_instant(usage.started_at)
            and headroom.is_instant(usage.resets_at) and headroom.is_instant(usage.expires_at)
        returning
            usage.user_id, usage.message_count, usage.held, usage."limit", usage.generation, usage.entitlement_version
    loop
        v_place := v_place + 1;
        while p_users[v_place] <> v_user loop
            v_place := v_place + 1;
        end loop;
        v_counted := v_counted || (v_place::bigint << 32 | v_count);
        if v_entitlement_version is distinct from p_entitlement_versions[v_place] or v_held > 0 then
            v_news := v_news || v_user;
        end if;
        if p_keys[v_place] is not null then
            v_key_places := v_key_places || v_place;
            v_key_counts := v_key_counts || v_count;
            v_key_helds := v_key_helds || v_held;
            v_key_limits := v_key_limits || v_limit;
            v_key_generations := v_key_generations || v_generation;
        end if;
    end loop;

    if v_key_places <> '{}' then
        insert into headroom.message_keys (
            bucket, user_id, created_at, generation, messages, used, held, "limit", verb, status, billing_period, key
        )
        select
            p_bucket, p_users[counted.place], v_now, counted.generation, p_key_messages[counted.place],
            counted.message_count - p_messages[counted.place] + p_so_far[counted.place], counted.held, counted."limit",
            'c', 'c', p_periods[p_period_ordinals[counted.place]], p_keys[counted.place]
        from unnest(v_key_places, v_key_counts, v_key_helds, v_key_limits, v_key_generations)
            as counted (place, message_count, held, "limit", generation);
    end if;
    update headroom.lane_receipts as receipt
    set number = p_number, counts = v_counted, answers = null, moved_at = v_now
    where receipt.bucket = p_bucket and receipt.lane = p_lane;
    return query select
        null::integer, null::integer, null::integer, null::integer, null::text, null::text, null::timestamptz, null::timestamptz,
        null::timestamptz, null::text, null::integer, v_now, null::bigint, v_counted;
    if v_news <> '{}' then
        return query
        select
            width_bucket(usage.user_id, p_users), usage.message_count, usage.held, usage."limit", usage.plan, usage.state,
            usage.started_at, usage.resets_at, usage.expires_at, usage.previous_plan, usage.plan_revision, v_now,
            usage.entitlement_version, null::bigint[]
        from public.message_usage as usage
        where usage.bucket = p_bucket and usage.user_id = any (v_news) and usage.billing_period = any (p_periods)
            and usage.billing_period = p_periods[p_period_ordinals[width_bucket(usage.user_id, p_users)]];
    end if;
end
$$;
