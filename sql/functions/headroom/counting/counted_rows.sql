-- Returns the snapshot of the usage row for each of p_returned_users, whose messages a batch has counted. Parameters as
-- in headroom.count_batch; p_key_messages: null, or the messages of each user's key. It reads the table and not
-- headroom.row_snapshots, so that Citus keeps the plan.
create or replace function headroom.counted_rows(
    p_bucket smallint, p_users uuid[], p_periods text[], p_period_ordinals integer[], p_returned_users uuid[],
    p_key_messages integer[]
) returns setof headroom.count_batch_row
    language plpgsql stable
as $$
begin
    return query
    select
        null::bigint[] as counts, width_bucket(usage.user_id, p_users) as ordinal,
        p_key_messages[width_bucket(usage.user_id, p_users)] as key_messages, usage.entitlement_version,
        (headroom.row_snapshot(
            usage.plan, usage.state, usage.billing_period, usage.message_count, usage.held, usage."limit",
            usage.started_at, usage.updated_at, usage.resets_at, usage.expires_at, usage.previous_plan, usage.renews,
            usage.plan_revision, usage.window_opened_at, usage.window_ends_at, usage.window_count, usage.window_held,
            usage.window_limit, headroom.now()
        )).*, -- noqa: AL03
        null::integer as words_revision
    from public.message_usage as usage
    where usage.bucket = p_bucket and usage.user_id = any(p_returned_users)
        and usage.billing_period = any(p_periods)
        and usage.billing_period = p_periods[p_period_ordinals[width_bucket(usage.user_id, p_users)]];
end
$$;
