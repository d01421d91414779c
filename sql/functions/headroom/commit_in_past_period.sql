-- Counts held messages in the period of the hold after that period has ended, and returns p_snapshot as the answer to
-- COMMIT. The verdict is 'expired' if an operator has deleted the usage row. Locks the usage row.
create or replace function headroom.commit_in_past_period(
    p_snapshot headroom.usage_snapshot, p_user_id uuid, p_key text, p_billing_period text, p_messages integer
) returns headroom.usage_snapshot
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := p_snapshot.observed_at;
    v_row public.message_usage := headroom.lock_usage(p_user_id, p_billing_period);
    v_snapshot headroom.usage_snapshot := p_snapshot;
begin
    if v_row.user_id is null then
        v_snapshot.verdict := 'expired';
        return v_snapshot;
    end if;
    v_row.message_count := least(v_row.message_count::bigint + p_messages, 2147483647);
    -- Computed while the row is locked. The number in the row may include holds that have expired.
    select least(holds.held - p_messages, 2147483647) into v_row.held
    from headroom.active_holds(p_user_id, p_billing_period, v_now) as holds;
    update public.message_usage
    set message_count = v_row.message_count, held = v_row.held, updated_at = v_now
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and billing_period = p_billing_period;
    update headroom.message_keys
    set status = 'c', committed_used = v_row.message_count, committed_held = v_row.held,
        committed_limit = v_row."limit", generation = v_row.generation
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and key = p_key;
    v_snapshot := headroom.replay_snapshot(
        p_snapshot, p_user_id, p_billing_period, v_row.message_count, v_row.held, v_row."limit"
    );
    v_snapshot.is_replay := false;
    v_snapshot.messages := p_messages;
    return v_snapshot;
end
$$;
