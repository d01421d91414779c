-- Returns what a batch has counted: first a row with the counts of all users, then a row for each of p_returned_users,
-- with the snapshot of the user's row. Parameters: variables of headroom.count_batch; p_key_messages: null, or
-- the messages of each user's key.
create or replace function headroom.counted_rows(
    p_bucket smallint, p_users uuid[], p_periods text[], p_period_ordinals integer[], p_counts bigint[],
    p_returned_users uuid[], p_key_messages integer[], p_at timestamptz
) returns setof headroom.count_batch_row
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return query select
        p_counts, null::integer, null::integer, null::bigint,
        (headroom.build_usage_snapshot(null, null, null, null, p_at)).*;
    if p_returned_users <> '{}' then
        return query
        select
            null::bigint[], width_bucket(usage.user_id, p_users), p_key_messages[width_bucket(usage.user_id, p_users)],
            usage.entitlement_version, (usage.snapshot).*
        from headroom.row_snapshots as usage
        where usage.bucket = p_bucket and usage.user_id = any(p_returned_users)
            and usage.billing_period = any(p_periods)
            and usage.billing_period = p_periods[p_period_ordinals[width_bucket(usage.user_id, p_users)]];
    end if;
end
$$;
