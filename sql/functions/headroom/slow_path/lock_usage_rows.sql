-- Locks the usage row of each user in one period, in the order of p_users, and returns the users whose row was written
-- while the database's clock was ahead: it is dated more than an hour after p_at (headroom.correct_clock_jump). Raises
-- HR006 if a row has a value that the constraints forbid.
--
-- p_users is ascending without duplicates. p_periods has one element per user.
create or replace function headroom.lock_usage_rows(
    p_bucket smallint, p_users uuid[], p_periods text[], p_at timestamptz
) returns uuid[]
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_ahead uuid[];
    v_invalid uuid[];
begin
    select
        coalesce(array_agg(locked.user_id) filter (where locked.updated_at > p_at + interval '1 hour'), '{}'),
        array_agg(locked.user_id) filter (where not locked.is_valid)
    into v_ahead, v_invalid
    from unnest(p_users, p_periods) as request (user_id, billing_period)
    cross join lateral (
        select
            usage.user_id, usage.updated_at, headroom.is_valid_usage_row(
                usage.message_count, usage.held, usage.released, usage.granted, usage."limit", usage.plan_limit,
                usage.updated_at, usage.started_at, usage.resets_at, usage.expires_at
            ) as is_valid
        from public.message_usage as usage
        where usage.bucket = p_bucket and usage.user_id = request.user_id
            and usage.billing_period = request.billing_period
        for update
    ) as locked;
    if v_invalid <> '{}' then
        -- Raises the error that names the column.
        perform headroom.lock_usage(v_invalid[1], p_periods[array_position(p_users, v_invalid[1])]);
    end if;
    return v_ahead;
end
$$;
