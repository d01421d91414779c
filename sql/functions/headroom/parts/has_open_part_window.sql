-- Returns whether a window of a model or a member is open in the rows of a user's billing period.
create or replace function headroom.has_open_part_window(p_user_id uuid, p_billing_period text) returns boolean
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    perform true from headroom.usage_parts as parts
    where parts.bucket = headroom.bucket_of(p_user_id) and parts.user_id = p_user_id
        and parts.billing_period = p_billing_period and parts.window_ends_at > headroom.now()
    limit 1;
    return found;
end
$$;
