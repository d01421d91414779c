-- Subtracts what headroom.transfer_window has added, if that window is still open, and lets it end as the receiver's
-- own would have. A window that contains nothing else ends now. p_raised: the result of that function. The caller has
-- locked the receiver's usage rows.
create or replace function headroom.revert_transferred_window(p_receiver uuid, p_raised jsonb) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    -- Citus refuses the function in CASE.
    v_now constant timestamptz := headroom.now();
    v_messages constant integer := p_raised ->> 'messages';
    v_own_end constant timestamptz := p_raised ->> 'own_end';
begin
    update public.message_usage as usage
    set window_count = greatest(usage.window_count - v_messages, 0),
        window_ends_at = case
            when usage.window_count <= v_messages and usage.window_held = 0 then v_now
            when v_own_end > v_now then least(usage.window_ends_at, v_own_end)
            else usage.window_ends_at
        end
    where usage.bucket = headroom.bucket_of(p_receiver) and usage.user_id = p_receiver
        and usage.window_opened_at = (p_raised ->> 'opened_at')::timestamptz
        and usage.window_ends_at > v_now;
end
$$;
