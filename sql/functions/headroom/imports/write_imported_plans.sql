-- Writes the plans of users who have no data but a row in headroom.subscribers, which the caller has locked. It writes
-- what public.set_plan would write for each, with the entries of the audit log. headroom.write_imported_usage writes
-- the usage rows later.
--
-- p_rows is ascending by user, each once, and all of one bucket.
create or replace function headroom.write_imported_plans(p_bucket smallint, p_rows headroom.import_row[]) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_users constant uuid[] := array(select given.user_id from unnest(p_rows) as given);
    v_anchor_days integer[];
    -- These are null except for trials.
    v_trials timestamptz[];
    v_written bigint;
begin
    if cardinality(p_rows) = 0 then
        return;
    end if;
    v_anchor_days := array(
        select coalesce(given.anchor_day, found.anchor_day) from unnest(p_rows) with ordinality as given
        cross join lateral (
            select subscriber.anchor_day::integer as anchor_day from headroom.subscribers as subscriber
            where subscriber.bucket = p_bucket and subscriber.user_id = given.user_id
            limit 1
        ) as found
        order by given.ordinality
    );
    v_trials := array(
        select case plans.cycle when 'trial' then coalesce(given.started_at, v_now) end
        from unnest(p_rows) with ordinality as given
        join headroom.plans as plans on plans.plan = given.plan
        order by given.ordinality
    );
    update headroom.subscribers as subscriber
    -- Citus 13.2.0 ends its server if a column of a domain is set to the element of an array; greatest() avoids that.
    set operator_set_at = v_now,
        anchor_day = greatest(v_anchor_days[width_bucket(subscriber.user_id, v_users)]),
        operator_anchor_day = greatest(v_anchor_days[width_bucket(subscriber.user_id, v_users)]),
        trial_started_at = greatest(v_trials[width_bucket(subscriber.user_id, v_users)])
    where subscriber.bucket = p_bucket and subscriber.user_id = any(v_users);
    insert into headroom.subscriptions (
        bucket, user_id, original_transaction_id, plan, started_at, expires_at, grace_until, billing_issue_at,
        unsubscribed_at, revoked_at
    )
    select
        p_bucket, given.user_id, 'operator', given.plan, written.started_at, written.expires_at, written.grace_until,
        written.billing_issue_at, written.unsubscribed_at, written.revoked_at
    from unnest(p_rows) with ordinality as given
    join headroom.plans as plans on plans.plan = given.plan
    cross join lateral headroom.operator_subscription(
        plans.cycle, plans.time_zone, given.state, given.started_at, given.expires_at, given.grace_until,
        v_anchor_days[given.ordinality], v_trials[given.ordinality], v_now
    ) as written;
    get diagnostics v_written = row_count;
    if v_written < cardinality(p_rows) then
        raise exception 'a plan of the file does not exist any more'
            using errcode = 'no_data_found', hint = 'Import the file again, which checks its plans.';
    end if;
    insert into headroom.audit_log (bucket, at, user_id, action, after, reason, actor)
    select
        p_bucket, v_now, derived.user_id, 'plan',
        headroom.plan_record(derived, v_anchor_days[width_bucket(derived.user_id, v_users)], null),
        nullif(current_setting('headroom.reason', true), ''), headroom.actor()
    from headroom.entitlements(p_bucket, v_users, v_now, 'deny') as derived;
end
$$;
