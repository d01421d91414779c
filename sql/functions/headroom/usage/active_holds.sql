-- Returns the number of messages that a user's holds reserve in a billing period, and when the first of these holds
-- expires (null without holds). Holds that have expired at p_at do not count. In message_keys, status 'h' means held.
create or replace function headroom.active_holds(
    p_user_id uuid, p_billing_period text, p_at timestamptz, out held bigint, out ends_at timestamptz
)
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
begin
    select coalesce(sum(keys.messages), 0)::bigint, min(keys.expires_at) into held, ends_at
    from headroom.message_keys as keys
    where keys.bucket = headroom.bucket_of(p_user_id) and keys.user_id = p_user_id
        and keys.status = 'h' and keys.billing_period = p_billing_period
        and keys.expires_at > p_at;
end
$$;
