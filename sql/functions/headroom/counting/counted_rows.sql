-- Returns a row for each of p_returned_users, whose messages a batch has counted: the snapshot of the usage row.
-- Parameters as in headroom.count_batch; p_key_messages: null, or the messages of each user's key. In PL/pgSQL, as
-- every function that reads tables of users: Citus cannot plan another one.
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
        (usage.snapshot).*, null::integer as words_revision -- noqa: AL03
    from headroom.row_snapshots as usage
    where usage.bucket = p_bucket and usage.user_id = any(p_returned_users)
        and usage.billing_period = any(p_periods)
        and usage.billing_period = p_periods[p_period_ordinals[width_bucket(usage.user_id, p_users)]];
end
$$;
