-- Locks a user's usage row of a period that is not open, and returns it; no row if there is none. held: the messages
-- that active holds reserve; held_in_row may include holds that have expired. Raises HR006 if the row has a value that
-- the constraints forbid.
create or replace function headroom.lock_past_usage(p_user_id uuid, p_billing_period text)
    returns table (
        used integer, held bigint, held_in_row integer, "limit" integer, generation bigint, plan text, state text,
        started_at timestamptz, resets_at timestamptz, expires_at timestamptz, renews boolean
    )
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform headroom.lock_usage(p_user_id, p_billing_period);
    -- This is another statement, so that it sees what the session that held the lock has written.
    return query
    select
        usage.message_count, holds.held, usage.held, usage."limit", usage.generation, usage.plan, usage.state,
        usage.started_at, usage.resets_at, usage.expires_at, usage.renews
    from public.message_usage as usage
    cross join lateral headroom.active_holds(p_user_id, p_billing_period, headroom.now()) as holds
    where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
        and usage.billing_period = p_billing_period;
end
$$;
