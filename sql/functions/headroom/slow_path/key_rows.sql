-- Returns rows of headroom.message_keys, in the order of its columns. Each parameter is an array with one element per
-- key, of the column that it names; parts are JSON. All users are in one bucket. A generation that is null is that of
-- the usage row.
create or replace function headroom.key_rows(
    p_user_id uuid[], p_key text[], p_verb text[], p_status text[], p_billing_period text[], p_created_at timestamptz[],
    p_expires_at timestamptz[], p_generation bigint[], p_messages integer[], p_used integer[], p_held integer[],
    p_limit integer[], p_committed_messages integer[], p_committed_used integer[], p_committed_held integer[],
    p_committed_limit integer[], p_window_opened_at timestamptz[], p_window_used integer[], p_window_held integer[],
    p_window_limit integer[], p_committed_window_used integer[], p_committed_window_held integer[],
    p_committed_window_limit integer[], p_parts text[]
) returns setof headroom.message_keys
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_bucket constant smallint := headroom.bucket_of(p_user_id[1]);
begin
    return query
    select
        keys.user_id, keys.created_at::headroom.instant, coalesce(keys.generation, usage.generation) as generation,
        keys.messages, keys.used, keys.held, keys."limit", keys.committed_messages, keys.committed_used,
        keys.committed_held, keys.committed_limit, keys.expires_at, v_bucket as bucket,
        keys.verb::"char", keys.status::"char", keys.billing_period, keys.key,
        keys.window_opened_at::headroom.instant, keys.window_used, keys.window_held, keys.window_limit,
        keys.committed_window_used, keys.committed_window_held, keys.committed_window_limit,
        keys.parts::jsonb
    from unnest(
        p_user_id, p_key, p_verb, p_status, p_billing_period, p_created_at, p_expires_at, p_generation, p_messages,
        p_used, p_held, p_limit, p_committed_messages, p_committed_used, p_committed_held, p_committed_limit,
        p_window_opened_at, p_window_used, p_window_held, p_window_limit, p_committed_window_used,
        p_committed_window_held, p_committed_window_limit, p_parts
    ) as keys (
        user_id, key, verb, status, billing_period, created_at, expires_at, generation, messages, used, held, "limit",
        committed_messages, committed_used, committed_held, committed_limit, window_opened_at, window_used, window_held,
        window_limit, committed_window_used, committed_window_held, committed_window_limit,
        parts
    )
    -- This is a join, because Citus plans no subquery here. There is no row if the generation is given.
    left join public.message_usage as usage
        on usage.bucket = v_bucket and usage.billing_period = keys.billing_period
            and usage.user_id = case when keys.generation is null then keys.user_id end;
end
$$;
