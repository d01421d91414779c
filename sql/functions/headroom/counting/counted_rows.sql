-- Returns the usage_rows of headroom.counted_batch for p_returned_users, whose messages a batch has counted. Parameters
-- as in headroom.count_batch; p_key_messages: null, or the messages of each user's key. It reads the table and not
-- headroom.row_snapshots, so that Citus keeps the plan.
create or replace function headroom.counted_rows(
    p_bucket smallint, p_users uuid[], p_periods text[], p_period_ordinals integer[], p_returned_users uuid[],
    p_key_messages integer[]
) returns bytea[]
    language plpgsql stable
as $$
declare
    v_rows bytea[];
begin
    select array_agg(record_send(row(
        width_bucket(usage.user_id, p_users), p_key_messages[width_bucket(usage.user_id, p_users)],
        usage.entitlement_version,
        (headroom.row_snapshot(
            usage.plan, usage.state, usage.billing_period, usage.message_count, usage.held, usage."limit",
            usage.started_at, usage.updated_at, usage.resets_at, usage.expires_at, usage.previous_plan, usage.renews,
            usage.plan_revision, usage.window_opened_at, usage.window_ends_at, usage.window_count, usage.window_held,
            usage.window_limit, usage.extra, usage.extra_expires, headroom.now()
        )).*
    )::headroom.counted_row)) into v_rows
    from public.message_usage as usage
    where usage.bucket = p_bucket and usage.user_id = any(p_returned_users)
        and usage.billing_period = any(p_periods)
        and usage.billing_period = p_periods[p_period_ordinals[width_bucket(usage.user_id, p_users)]];
    return v_rows;
end
$$;
