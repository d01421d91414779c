-- Returns a user's window that is open at p_at; null if none is open, or if p_window_seconds is null because the plan
-- has no windows. The longest that a plan may have, 2678400 seconds, gives the window whatever the plan. It may be in
-- the row of an earlier period or plan, from which the next message moves it.
--
-- A window that opened more than an hour after p_at was opened while the clock was ahead, and is not open. The
-- condition on billing_period bounds the rows to read: a window lasts at most 31 days, and the month before which its
-- period began at most two months.
create or replace function headroom.open_window(p_user_id uuid, p_window_seconds integer, p_at timestamptz)
    returns headroom.usage_window
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_window headroom.usage_window;
begin
    if p_window_seconds is null then
        return null;
    end if;
    select
        usage.billing_period, usage.window_opened_at,
        headroom.window_end(usage.window_opened_at, usage.window_ends_at, p_window_seconds),
        coalesce(usage.window_count, 0), coalesce(usage.window_held, 0)
    into v_window
    from public.message_usage as usage
    where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
        and usage.billing_period >= to_char(p_at at time zone 'UTC' - interval '3 months', 'YYYY-MM')
        and usage.window_opened_at between '2000-01-01T00:00:00Z' and p_at + interval '1 hour'
        and headroom.window_end(usage.window_opened_at, usage.window_ends_at, p_window_seconds) > p_at
    order by usage.window_opened_at desc
    limit 1;
    if not found then
        return null;
    end if;
    if v_window.held > 0 then
        select least(coalesce(sum(keys.messages), 0), 2147483647), min(keys.expires_at)
        into v_window.held, v_window.holds_end_at
        from headroom.message_keys as keys
        where keys.bucket = headroom.bucket_of(p_user_id) and keys.user_id = p_user_id
            and keys.status = 'h' and keys.window_opened_at = v_window.opened_at and keys.expires_at > p_at;
    end if;
    return v_window;
end
$$;
