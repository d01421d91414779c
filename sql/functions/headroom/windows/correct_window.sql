-- Returns a user's window as it is to be after the clock was corrected; null if none was opened more than an hour after
-- p_at. The messages of such windows, in the rows of any periods and plans, were sent before p_at in reality. They
-- count in the window that is open at p_at, or otherwise in one that opens at p_at. The plan of p_at decides nothing:
-- one without windows keeps it. billing_period is that of a row that had such a window. Updates the keys, and ends the
-- windows where they were. The caller has locked the subscriber.
create or replace function headroom.correct_window(p_user_id uuid, p_at timestamptz) returns headroom.usage_window
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_opened_at timestamptz[];
    v_length interval;
    v_used bigint;
    v_held bigint;
    v_period text;
    -- This finds a window of any length: windows last 31 days at most.
    v_window headroom.usage_window := headroom.open_window(p_user_id, 2678400, p_at);
begin
    select
        array_agg(usage.window_opened_at), max(usage.window_ends_at - usage.window_opened_at),
        sum(usage.window_count), sum(usage.window_held), max(usage.billing_period)
    into v_opened_at, v_length, v_used, v_held, v_period
    from public.message_usage as usage
    where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
        and usage.window_opened_at > p_at + interval '1 hour'
        and headroom.is_instant(usage.window_opened_at) and headroom.is_instant(usage.window_ends_at);
    if v_opened_at is null then
        return null;
    end if;
    update public.message_usage as usage
    set window_opened_at = null, window_ends_at = null, window_count = null, window_held = null
    where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
        and (usage.window_opened_at = any(v_opened_at) or usage.billing_period = v_window.billing_period);
    v_window.billing_period := coalesce(v_window.billing_period, v_period);
    v_window.ends_at := coalesce(v_window.ends_at, p_at + v_length);
    v_window.opened_at := coalesce(v_window.opened_at, p_at);
    v_window.used := least(v_used + coalesce(v_window.used, 0), 2147483647);
    v_window.held := least(v_held + coalesce(v_window.held, 0), 2147483647);
    update headroom.message_keys set window_opened_at = v_window.opened_at
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and window_opened_at = any(v_opened_at);
    return v_window;
end
$$;
