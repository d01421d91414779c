-- Makes the row of the user's month before p_billing_period unusable if it ended long ago: perhaps the clock is ahead
-- by months. When it is right again, nothing may be counted in that row before headroom.correct_clock_jump has added
-- the messages of the months ahead. Nearly always the month has just ended, and nothing is written. The caller has
-- locked the subscriber.
create or replace function headroom.end_earlier_month(
    p_user_id uuid, p_billing_period text, p_at timestamptz
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    update public.message_usage as usage set usable_until = '-infinity'
    where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
        and usage.usable_until > '-infinity' and usage.usable_until < p_at - interval '35 days'
        and usage.billing_period = (
            select max(earlier.billing_period) from public.message_usage as earlier
            where earlier.bucket = headroom.bucket_of(p_user_id) and earlier.user_id = p_user_id
                and earlier.billing_period < p_billing_period and headroom.is_month(earlier.billing_period)
        );
end
$$;
