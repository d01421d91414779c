-- Closes a user's open window, in the row of any period or plan, and returns it as it was; null if none is open. The
-- next message opens another one. The messages and holds of its keys count in no window any more, as after its end. The
-- caller has locked the subscriber. Locks that row and the one of p_billing_period, in the order of the slow path.
create or replace function headroom.close_window(p_user_id uuid, p_billing_period text) returns headroom.usage_window
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_window headroom.usage_window;
begin
    perform from public.message_usage
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id
        and (billing_period = p_billing_period or window_ends_at > headroom.now())
    order by billing_period for update;
    -- This finds a window of any length: windows last 31 days at most.
    v_window := headroom.open_window(p_user_id, 2678400, headroom.now());
    update headroom.message_keys as keys set window_opened_at = null
    where keys.bucket = headroom.bucket_of(p_user_id) and keys.user_id = p_user_id
        and keys.window_opened_at in (
            select usage.window_opened_at from public.message_usage as usage
            where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
        );
    update public.message_usage
    set window_opened_at = null, window_ends_at = null, window_count = null, window_held = null
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and window_ends_at > headroom.now();
    return v_window;
end
$$;
