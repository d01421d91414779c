-- Returns a user's window as it is to be after the clock was corrected; null if none was opened more than an hour after
-- p_at. Its messages were sent before p_at in reality: they count in the window that is open at p_at, or else in one
-- that opens at p_at. billing_period is that of the row with the window. Updates the keys, and ends the window where it
-- was open. The caller has locked the subscriber.
create or replace function headroom.correct_window(p_user_id uuid, p_window_seconds integer, p_at timestamptz)
    returns headroom.usage_window
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_window headroom.usage_window;
    v_open headroom.usage_window;
begin
    select usage.billing_period, usage.window_opened_at, usage.window_ends_at, usage.window_count, usage.window_held
    into v_window
    from public.message_usage as usage
    where p_window_seconds is not null and usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
        and usage.window_opened_at > p_at + interval '1 hour'
    order by usage.window_opened_at desc
    limit 1;
    if not found then
        return null;
    end if;
    v_open := headroom.open_window(p_user_id, p_window_seconds, p_at);
    update headroom.message_keys set window_opened_at = coalesce(v_open.opened_at, p_at)
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and window_opened_at = v_window.opened_at;
    update public.message_usage as usage
    set window_opened_at = null, window_ends_at = null, window_count = null, window_held = null
    where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
        and (usage.window_opened_at > p_at + interval '1 hour' or usage.billing_period = v_open.billing_period);
    v_window.ends_at := coalesce(v_open.ends_at, p_at + (v_window.ends_at - v_window.opened_at));
    v_window.opened_at := coalesce(v_open.opened_at, p_at);
    v_window.used := least(v_window.used::bigint + coalesce(v_open.used, 0), 2147483647);
    v_window.held := least(v_window.held::bigint + coalesce(v_open.held, 0), 2147483647);
    return v_window;
end
$$;
