-- Sets the counts of all models and members of a user to 0 in a period, and ends the windows in its rows. The caller
-- has locked the usage row of the open period.
create or replace function headroom.reset_all_parts(p_user_id uuid, p_billing_period text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    -- The generation stays: the usage row gets a new one, and a message that is released later is of neither.
    update headroom.usage_parts
    set used = 0, updated_at = headroom.now(), window_opened_at = null, window_ends_at = null, window_used = null,
        window_held = null
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and billing_period = p_billing_period;
end
$$;
