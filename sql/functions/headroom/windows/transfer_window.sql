-- Raises a receiver's open window to that of the giver, which counted the messages of the transferred subscription.
-- Returns what headroom.revert_transferred_window needs; null if nothing was raised. The caller has locked the
-- receiver's usage rows.
--
-- p_window: the giver's window. What it holds counts as used. p_window_seconds: the length of the transferred plan's
-- windows; null if it has none, and then the window is kept and counts nothing. p_billing_period: the receiver's open
-- period.
--
-- A user has one window. So the fuller count and the later end apply, not the sum: a subscription that is transferred
-- back and forth must not count a message twice. The receiver waits for one length of a window at most.
create or replace function headroom.transfer_window(
    p_receiver uuid, p_window headroom.usage_window, p_window_seconds integer, p_billing_period text
) returns jsonb
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_taken constant integer := least((p_window).used::bigint + (p_window).held, 2147483647);
    v_ends_at constant timestamptz
        := headroom.window_end((p_window).opened_at, (p_window).ends_at, p_window_seconds);
    v_own constant headroom.usage_window
        := headroom.open_window(p_receiver, coalesce(p_window_seconds, 2678400), headroom.now());
    v_window headroom.usage_window := v_own;
    v_period text;
begin
    if not coalesce(v_taken > 0 and v_ends_at > headroom.now(), false) then
        return null;
    end if;
    v_period := headroom.receiving_period(p_receiver, p_billing_period);
    v_window.used := greatest(v_own.used, v_taken);
    v_window.held := coalesce(v_own.held, 0);
    if v_own.opened_at is null or v_own.ends_at < v_ends_at then
        v_window.opened_at := (p_window).opened_at;
        v_window.ends_at := v_ends_at;
    end if;
    if v_period is null or v_window is not distinct from v_own then
        return null;
    end if;
    -- The receiver's own messages and holds are now those of this window.
    update headroom.message_keys set window_opened_at = v_window.opened_at
    where bucket = headroom.bucket_of(p_receiver) and user_id = p_receiver and window_opened_at = v_own.opened_at
        and v_own.opened_at <> v_window.opened_at;
    update public.message_usage
    set window_opened_at = null, window_ends_at = null, window_count = null, window_held = null
    where bucket = headroom.bucket_of(p_receiver) and user_id = p_receiver and billing_period = v_own.billing_period
        and billing_period <> v_period;
    perform headroom.write_window(p_receiver, v_period, v_window);
    return jsonb_build_object(
        'opened_at', v_window.opened_at, 'messages', v_window.used - coalesce(v_own.used, 0), 'own_end', v_own.ends_at
    );
end
$$;
