-- Returns whether the usage row of a billing period is dated more than an hour after p_at: it was written while the
-- clock was ahead.
create or replace function headroom.is_dated_ahead(p_user_id uuid, p_billing_period text, p_at timestamptz)
    returns boolean
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (
        select from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
            and usage.billing_period = p_billing_period and usage.updated_at > p_at + interval '1 hour'
    );
end
$$;
