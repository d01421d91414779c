-- Makes the rows of a user's newest month, week or day before the period in p_periods unusable, unless it is the one
-- directly before. The clock may be ahead; when it is right again, nothing may be counted in these rows before
-- headroom.correct_clock_jump has added the messages of the periods ahead. The caller has locked the subscribers.
-- p_periods has one element per user.
create or replace function headroom.end_earlier_periods(p_bucket smallint, p_users uuid[], p_periods text[])
    returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_user uuid;
    v_label text;
begin
    for v_user, v_label in
        select request.user_id, split_part(earlier.billing_period, '.', 1)
        from (
            select named.user_id, named.billing_period, headroom.label_cycle(named.billing_period) as cycle
            from unnest(p_users, p_periods) as named (user_id, billing_period)
            offset 0
        ) as request
        cross join lateral (
            select usage.billing_period from public.message_usage as usage
            where usage.bucket = p_bucket and usage.user_id = request.user_id
                and usage.billing_period < request.billing_period
                and headroom.label_cycle(usage.billing_period) = request.cycle
            order by usage.billing_period desc
            limit 1
        ) as earlier
        where headroom.next_period_day(request.cycle, headroom.label_day(earlier.billing_period))
            < headroom.label_day(request.billing_period)
    loop
        update public.message_usage set usable_until = '-infinity'
        where bucket = p_bucket and user_id = v_user and billing_period >= v_label
            and split_part(billing_period, '.', 1) = v_label and usable_until > '-infinity';
    end loop;
end
$$;
