-- Makes the row of each user's month before the one in p_periods unusable if it ended long ago: perhaps the clock is
-- ahead by months. When it is right again, nothing may be counted in that row before headroom.correct_clock_jump has
-- added the messages of the months ahead. Nearly always the month has just ended, and nothing is written. The caller
-- has locked the subscribers. p_periods has one element per user.
create or replace function headroom.end_earlier_months(
    p_bucket smallint, p_users uuid[], p_periods text[], p_at timestamptz
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_user uuid;
    v_period text;
begin
    for v_user, v_period in
        select request.user_id, earlier.billing_period
        from unnest(p_users, p_periods) as request (user_id, billing_period)
        cross join lateral (
            select usage.billing_period, usage.usable_until from public.message_usage as usage
            where usage.bucket = p_bucket and usage.user_id = request.user_id
                and usage.billing_period < request.billing_period and headroom.is_month(usage.billing_period)
            order by usage.billing_period desc
            limit 1
        ) as earlier
        where earlier.usable_until > '-infinity' and earlier.usable_until < p_at - interval '35 days'
    loop
        update public.message_usage set usable_until = '-infinity'
        where bucket = p_bucket and user_id = v_user and billing_period = v_period;
    end loop;
end
$$;
