-- Locks usage rows in the order of p_users, and returns the users of rows that were written while the database's clock
-- was ahead: they are dated more than an hour after p_at, or have a window that opened then
-- (headroom.correct_clock_jump). Raises HR006 if a row has a value that the constraints forbid.
--
-- p_users is ascending. p_periods: the period of each row.
create or replace function headroom.lock_usage_rows(
    p_bucket smallint, p_users uuid[], p_periods text[], p_at timestamptz
) returns uuid[]
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_ahead uuid[];
    v_invalid bigint[];
begin
    select
        coalesce(array_agg(locked.user_id) filter (
            where greatest(locked.updated_at, locked.window_opened_at) > p_at + interval '1 hour'
        ), '{}'),
        array_agg(request.ordinal) filter (where not locked.is_valid)
    into v_ahead, v_invalid
    from unnest(p_users, p_periods) with ordinality as request (user_id, billing_period, ordinal)
    cross join lateral (
        select
            usage.user_id, usage.updated_at, usage.window_opened_at, headroom.is_valid_usage_row(
                usage.message_count, usage.held, usage.released, usage.granted, usage."limit", usage.plan_limit,
                usage.updated_at, usage.started_at, usage.resets_at, usage.expires_at,
                usage.window_count, usage.window_held, usage.window_limit
            ) as is_valid
        from public.message_usage as usage
        where usage.bucket = p_bucket and usage.user_id = request.user_id
            and usage.billing_period = request.billing_period
        for update
    ) as locked;
    if v_invalid <> '{}' then
        -- This raises the error that names the column.
        perform headroom.lock_usage(p_users[v_invalid[1]], p_periods[v_invalid[1]]);
    end if;
    return v_ahead;
end
$$;
