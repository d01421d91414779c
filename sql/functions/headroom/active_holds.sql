-- Returns the number of messages that a user holds in a period at p_at, and the earliest end of these holds (null
-- without holds).
create or replace function headroom.active_holds(
    p_user_id uuid, p_billing_period text, p_at timestamptz, out held bigint, out ends_at timestamptz
)
    language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
    select
        coalesce(sum(keys.messages), 0)::bigint as held,
        min(keys.expires_at) as ends_at
    from headroom.message_keys as keys
    where keys.bucket = headroom.bucket_of(p_user_id) and keys.user_id = p_user_id
        and keys.status = 'h' and keys.billing_period = p_billing_period
        and keys.expires_at > p_at;
end;
grant execute on function headroom.active_holds(uuid, text, timestamptz) to headroom_operator, headroom_dashboard;
alter function headroom.active_holds(uuid, text, timestamptz) owner to headroom_service;
