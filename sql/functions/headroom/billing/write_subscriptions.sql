-- Writes the store subscriptions of a user. Returns the user's entitlement, and whether the audit log has a row about
-- it. The caller has locked the subscriber. Locks the usage rows.
--
-- p_user: {"user", "anchor_day", "previous_plan", "store_trial_started_at", "trial_used_up_at", "subscriptions": the
-- changed ones, "removed": original transaction ids}. "subscriptions" and "removed" are absent if empty. The four
-- members before them are absent if none of the four changed.
--
-- The audit log gets the values that the tables had before and have after, whatever the caller passes: operators may
-- call this.
create or replace function headroom.write_subscriptions(
    p_user jsonb, p_reason text, p_event_id text, out entitlement headroom.entitlement, out is_recorded boolean
)
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_user_id constant uuid := (p_user ->> 'user')::uuid;
    v_bucket constant smallint := headroom.bucket_of(v_user_id);
    v_changed constant jsonb := coalesce(p_user -> 'subscriptions', '[]');
    v_removed constant jsonb := coalesce(p_user -> 'removed', '[]');
    v_entitlement_before constant headroom.entitlement := headroom.chosen_plan(v_user_id, headroom.now());
    v_written headroom.subscribers;
    v_subscriber_before headroom.subscribers;
    v_subscriber_after headroom.subscribers;
    v_subscription headroom.subscriptions;
    v_row_before headroom.subscriptions;
    v_row_after headroom.subscriptions;
    -- These are the subscriptions that differ, nearly always one. A row of nulls is one that does not exist.
    v_rows_before headroom.subscriptions[] := '{}';
    v_rows_after headroom.subscriptions[] := '{}';
    v_before jsonb;
    v_after jsonb;
begin
    select * into v_subscriber_before from headroom.subscribers
    where bucket = v_bucket and user_id = v_user_id;
    v_subscriber_after := v_subscriber_before;
    if p_user ? 'anchor_day' then
        -- JSON is read apart from the tables, because Citus does not pass on column definitions.
        v_written := jsonb_populate_record(null::headroom.subscribers, p_user);
        update headroom.subscribers as subscriber
        set anchor_day = v_written.anchor_day, previous_plan = v_written.previous_plan,
            store_trial_started_at = v_written.store_trial_started_at, trial_used_up_at = v_written.trial_used_up_at
        where subscriber.bucket = v_bucket and subscriber.user_id = v_user_id
        returning * into v_subscriber_after;
    end if;
    -- The loop counts, because one over the elements as rows opens a cursor even without elements.
    for v_index in 0 .. jsonb_array_length(v_changed || v_removed) - 1 loop
        v_subscription := jsonb_populate_record(
            null::headroom.subscriptions,
            coalesce(v_changed -> v_index, jsonb_build_object(
                'original_transaction_id', v_removed -> v_index - jsonb_array_length(v_changed)
            )) || jsonb_build_object('bucket', v_bucket, 'user_id', v_user_id)
        );
        v_row_after := null;
        select * into v_row_before from headroom.subscriptions
        where bucket = v_bucket and user_id = v_user_id
            and original_transaction_id = v_subscription.original_transaction_id;
        if v_index >= jsonb_array_length(v_changed) then
            delete from headroom.subscriptions
            where bucket = v_bucket and user_id = v_user_id
                and original_transaction_id = v_subscription.original_transaction_id;
        elsif found then
            -- An update of the same plan locks no row of headroom.plans, as an insert does for its foreign key.
            update headroom.subscriptions
            set plan = v_subscription.plan, started_at = v_subscription.started_at,
                expires_at = v_subscription.expires_at, grace_until = v_subscription.grace_until,
                billing_issue_at = v_subscription.billing_issue_at, unsubscribed_at = v_subscription.unsubscribed_at,
                revoked_at = v_subscription.revoked_at, product = v_subscription.product,
                next_plan = v_subscription.next_plan, next_product = v_subscription.next_product,
                environment = v_subscription.environment, event_at = v_subscription.event_at,
                anchor_day = v_subscription.anchor_day, store = v_subscription.store,
                renews = v_subscription.renews, price = v_subscription.price, currency = v_subscription.currency,
                period_started_at = v_subscription.period_started_at,
                period_ends_at = v_subscription.period_ends_at, period_day = v_subscription.period_day
            where bucket = v_bucket and user_id = v_user_id
                and original_transaction_id = v_subscription.original_transaction_id
            returning * into v_row_after;
        else
            insert into headroom.subscriptions values (v_subscription.*) returning * into v_row_after;
        end if;
        -- The time of the newest event is not recorded.
        v_row_before.event_at := null;
        v_row_after.event_at := null;
        if v_row_before is distinct from v_row_after then
            v_rows_before := v_rows_before || v_row_before;
            v_rows_after := v_rows_after || v_row_after;
        end if;
    end loop;
    select * into entitlement from headroom.entitlements(v_bucket, array[v_user_id], headroom.now(), 'deny');
    perform headroom.apply_entitlement(v_user_id, entitlement);
    is_recorded := false;
    -- If only the subscriber, or nothing, has changed, the rows of the one iteration are null.
    for v_index in 1 .. greatest(cardinality(v_rows_before), 1) loop
        v_row_before := v_rows_before[v_index];
        v_row_after := v_rows_after[v_index];
        v_before := headroom.plan_record(
            v_entitlement_before, v_subscriber_before.anchor_day, v_subscriber_before.previous_plan
        );
        v_before := headroom.subscription_record(
            v_before, v_row_before.original_transaction_id, v_row_before.plan, v_row_before.product,
            v_row_before.expires_at, v_row_before.grace_until, v_row_before.billing_issue_at,
            v_row_before.unsubscribed_at, v_row_before.revoked_at, v_row_before.next_plan, v_row_before.next_product
        );
        v_after := headroom.plan_record(
            entitlement, v_subscriber_after.anchor_day, v_subscriber_after.previous_plan
        );
        v_after := headroom.subscription_record(
            v_after, v_row_after.original_transaction_id, v_row_after.plan, v_row_after.product,
            v_row_after.expires_at, v_row_after.grace_until, v_row_after.billing_issue_at,
            v_row_after.unsubscribed_at, v_row_after.revoked_at, v_row_after.next_plan, v_row_after.next_product
        );
        if v_before is not distinct from v_after then
            -- These are the columns that the log has only if nothing else changed.
            select
                nullif(coalesce(v_before, '{}') || coalesce(jsonb_object_agg(old.key, old.value), '{}'), '{}'),
                nullif(coalesce(v_after, '{}') || coalesce(jsonb_object_agg(old.key, new.value), '{}'), '{}')
            into v_before, v_after
            from jsonb_each(to_jsonb(v_subscriber_before) || coalesce(to_jsonb(v_row_before), '{}')) as old
            join jsonb_each(to_jsonb(v_subscriber_after) || coalesce(to_jsonb(v_row_after), '{}')) as new
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
