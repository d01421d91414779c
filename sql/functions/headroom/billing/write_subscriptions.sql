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
    v_subscription headroom.subscriptions;
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
    -- The loop counts, because one over the elements as rows opens a cursor even without elements.
    for v_index in 0 .. coalesce(jsonb_array_length(p_user -> 'subscriptions'), 0) - 1 loop
        v_subscription := jsonb_populate_record(
            null::headroom.subscriptions,
            p_user -> 'subscriptions' -> v_index || jsonb_build_object('bucket', v_bucket, 'user_id', v_user_id)
        );
        -- Not an update, which would name each column.
        delete from headroom.subscriptions
        where bucket = v_bucket and user_id = v_user_id
            and original_transaction_id = v_subscription.original_transaction_id;
        insert into headroom.subscriptions values (v_subscription.*);
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
