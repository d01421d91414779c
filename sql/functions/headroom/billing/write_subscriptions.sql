-- Writes the store subscriptions of a user. Returns the user's entitlement, and whether the audit log has a row about
-- it. The caller has locked the subscriber. Locks the usage rows.
--
-- p_user: {"user", "anchor_day", "previous_plan", "store_trial_started_at", "trial_used_up_at", "subscriptions": those
-- that changed, "removed": original transaction ids}. "subscriptions" and "removed" are absent if empty. The four
-- members before them are absent if none of the four changed.
--
-- The audit log gets what the tables had before and have after, whatever the caller passes: operators may call this.
create or replace function headroom.write_subscriptions(
    p_user jsonb, p_reason text, p_event_id text, out entitlement headroom.entitlement, out is_recorded boolean
)
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_user_id constant uuid := (p_user ->> 'user')::uuid;
    v_entitlement_before constant headroom.entitlement := headroom.entitlement(v_user_id, headroom.now(), 'deny');
    v_rows_before constant jsonb := headroom.subscription_rows(v_user_id);
    v_rows_after jsonb;
    v_subscriber_before headroom.subscribers;
    v_subscriber_after headroom.subscribers;
    v_before jsonb;
    v_after jsonb;
    v_transaction text;
    v_anchor_day smallint;
    v_previous_plan text;
    v_store_trial_started_at timestamptz;
    v_trial_used_up_at timestamptz;
    v_subscription record;
    v_bucket constant smallint := headroom.bucket_of(v_user_id);
begin
    select * into v_subscriber_before from headroom.subscribers
    where bucket = v_bucket and user_id = v_user_id;
    if p_user ? 'anchor_day' then
        -- JSON is read apart from the tables, because Citus passes on no column definitions.
        select written.* into v_anchor_day, v_previous_plan, v_store_trial_started_at, v_trial_used_up_at
        from jsonb_to_record(p_user) as written (
            anchor_day smallint, previous_plan text, store_trial_started_at timestamptz, trial_used_up_at timestamptz
        );
        update headroom.subscribers as subscriber
        set anchor_day = v_anchor_day, previous_plan = v_previous_plan,
            store_trial_started_at = v_store_trial_started_at, trial_used_up_at = v_trial_used_up_at
        where subscriber.bucket = v_bucket and subscriber.user_id = v_user_id;
    end if;
    if p_user ? 'removed' then
        delete from headroom.subscriptions
        where bucket = v_bucket and user_id = v_user_id
            and original_transaction_id in (select jsonb_array_elements_text(p_user -> 'removed'));
    end if;
    for v_subscription in
        select written.*
        from jsonb_to_recordset(p_user -> 'subscriptions') as written (
            original_transaction_id text, plan text, started_at timestamptz, expires_at timestamptz,
            grace_until timestamptz, billing_issue_at timestamptz, unsubscribed_at timestamptz, revoked_at timestamptz,
            product text, next_plan text, next_product text, environment text, event_at timestamptz,
            anchor_day smallint, store text, renews boolean, price text, currency text
        )
    loop
        insert into headroom.subscriptions (
            bucket, user_id, original_transaction_id, plan, started_at, expires_at, grace_until, billing_issue_at,
            unsubscribed_at, revoked_at, product, next_plan, next_product, environment, event_at, anchor_day, store,
            renews, price, currency
        )
        values (
            v_bucket, v_user_id, v_subscription.original_transaction_id, v_subscription.plan,
            v_subscription.started_at, v_subscription.expires_at, v_subscription.grace_until,
            v_subscription.billing_issue_at, v_subscription.unsubscribed_at, v_subscription.revoked_at,
            v_subscription.product, v_subscription.next_plan, v_subscription.next_product, v_subscription.environment,
            v_subscription.event_at, v_subscription.anchor_day, v_subscription.store, v_subscription.renews,
            v_subscription.price, v_subscription.currency
        )
        on conflict (bucket, user_id, original_transaction_id) do update
        set (
            plan, started_at, expires_at, grace_until, billing_issue_at, unsubscribed_at, revoked_at, product,
            next_plan, next_product, environment, event_at, anchor_day, store, renews, price, currency
        ) = row(
            excluded.plan, excluded.started_at, excluded.expires_at, excluded.grace_until, excluded.billing_issue_at,
            excluded.unsubscribed_at, excluded.revoked_at, excluded.product, excluded.next_plan,
            excluded.next_product, excluded.environment, excluded.event_at, excluded.anchor_day, excluded.store,
            excluded.renews, excluded.price, excluded.currency
        );
    end loop;
    entitlement := headroom.entitlement(v_user_id, headroom.now(), 'deny');
    perform headroom.apply_entitlement(v_user_id, entitlement);
    v_rows_after := headroom.subscription_rows(v_user_id);
    select * into v_subscriber_after from headroom.subscribers
    where bucket = v_bucket and user_id = v_user_id;
    is_recorded := false;
    -- A row for each subscription that changed, nearly always one. null: only the subscriber, or nothing, changed.
    for v_transaction in
        select changed.transaction
        from jsonb_object_keys(v_rows_before || v_rows_after) as changed (transaction)
        where v_rows_before -> changed.transaction is distinct from v_rows_after -> changed.transaction
        union all
        select null where v_rows_before = v_rows_after
        order by 1
    loop
        v_before := headroom.subscription_record(
            v_entitlement_before, v_subscriber_before.anchor_day, v_subscriber_before.previous_plan,
            v_rows_before -> v_transaction
        );
        v_after := headroom.subscription_record(
            entitlement, v_subscriber_after.anchor_day, v_subscriber_after.previous_plan, v_rows_after -> v_transaction
        );
        if v_before is not distinct from v_after then
            -- Columns that the log has only if nothing else changed.
            select
                nullif(coalesce(v_before, '{}') || coalesce(jsonb_object_agg(old.key, old.value), '{}'), '{}'),
                nullif(coalesce(v_after, '{}') || coalesce(jsonb_object_agg(old.key, new.value), '{}'), '{}')
            into v_before, v_after
            from jsonb_each(to_jsonb(v_subscriber_before) || coalesce(v_rows_before -> v_transaction, '{}')) as old
            join jsonb_each(to_jsonb(v_subscriber_after) || coalesce(v_rows_after -> v_transaction, '{}')) as new
                on new.key = old.key and new.value <> old.value;
        end if;
        is_recorded := is_recorded or v_before is distinct from v_after;
        perform headroom.record_change(
            v_user_id, null, 'store_event', v_before,
            -- A removed subscription is recorded as an empty object.
            coalesce(v_after, case when v_before is not null then '{}'::jsonb end), p_reason, p_event_id
        );
    end loop;
end
$$;
