-- Writes a user's open window into a usage row. It is for rows that headroom.write_usage_rows does not write, such as
-- that of an earlier period or plan. The caller has locked the row.
create or replace function headroom.write_window(
    p_user_id uuid, p_billing_period text, p_window headroom.usage_window
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    update public.message_usage as usage
    set window_opened_at = (p_window).opened_at, window_ends_at = (p_window).ends_at,
        window_count = (p_window).used, window_held = (p_window).held
    where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
        and usage.billing_period = p_billing_period;
end
$$;
