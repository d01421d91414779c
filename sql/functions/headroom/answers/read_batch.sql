-- Returns the usage snapshot of each user of a bucket. Locks nothing and creates nothing.
--
-- p_users: distinct and ascending. p_periods: the billing period in which each user's row is expected.
-- p_unknown_users_policy: what users without a subscription get: trial, free or deny. ordinal: the user's position in
-- p_users. is_stale: whether the next message will rewrite a row of the user. buckets_revision: the revision of the map
-- of buckets; if it is another than the caller's, users may be in other buckets.
--
-- A usable row gives the snapshot. The snapshots of other users are derived by headroom.entitlements. Each statement
-- uses one table, so that Citus keeps its plan (docs/decisions/0041-sql-that-citus-can-plan.md). Few rows are declared,
-- so that read_batch.sql keeps its own plan, too. Like headroom.count_batch, it sets no search_path.
create or replace function headroom.read_batch(
    p_bucket smallint, p_users uuid[], p_periods text[], p_unknown_users_policy text
) returns table (
    ordinal integer, is_stale boolean, snapshot headroom.usage_snapshot, words_revision integer,
    buckets_revision integer
)
    language plpgsql stable rows 16
as $$
#variable_conflict use_column
declare
    v_now constant timestamptz := headroom.now();
    v_latest constant timestamptz := v_now + interval '1 hour';
    v_revision integer;
    v_row record;
    -- These are the users without a usable row, with null in the place of the others.
    v_left uuid[] := p_users;
begin
    select revised.revision, revised.words_revision, revised.buckets_revision
    into v_revision, words_revision, buckets_revision
    from headroom.present_revisions as revised;
    is_stale := false;
    for v_row in
        select
            width_bucket(usage.user_id, p_users) as ordinal,
            headroom.row_snapshot(
                usage.plan, usage.state, usage.billing_period, usage.message_count, usage.held, usage."limit",
                usage.started_at, usage.updated_at, usage.resets_at, usage.expires_at, usage.previous_plan,
                usage.renews, usage.plan_revision, usage.window_opened_at, usage.window_ends_at, usage.window_count,
                usage.window_held, usage.window_limit, usage.extra, usage.extra_expires, v_now
            ) as snapshot
        from public.message_usage as usage
        where usage.bucket = p_bucket and usage.user_id = any(p_users) and usage.billing_period = any(p_periods)
            and usage.billing_period = p_periods[width_bucket(usage.user_id, p_users)]
            and headroom.is_usable(usage.usable_until, usage.updated_at, usage.plan_revision, v_revision, v_now)
    loop
        ordinal := v_row.ordinal;
        snapshot := v_row.snapshot;
        v_left[ordinal] := null;
        return next;
    end loop;

    v_left := array_remove(v_left, null);
    if v_left = '{}' then
        return;
    end if;
    for v_row in
        select entitlement
        from headroom.entitlements(p_bucket, v_left, v_now, p_unknown_users_policy) as entitlement
    loop
        ordinal := width_bucket((v_row.entitlement).user_id, p_users);
        snapshot := headroom.read_open_usage(v_row.entitlement);
        if snapshot.denial_reason is not null then
            is_stale := false;
        else
            perform true from public.message_usage as usage
            where usage.bucket = p_bucket and usage.user_id = p_users[ordinal]
                and (
                    usage.billing_period = snapshot.billing_period
                    and (usage.usable_until <= v_now or usage.plan_revision <> snapshot.plan_revision)
                    or usage.updated_at > v_latest
                )
            limit 1;
            is_stale := found;
        end if;
        return next;
    end loop;
end
$$;
