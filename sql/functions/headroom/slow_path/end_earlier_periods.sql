-- Makes the rows of a user's newest month, week or day before the period in p_periods unusable, unless it is the one
-- directly before. The clock may be ahead; when it is right again, nothing may be counted in these rows before
-- headroom.correct_clock_jump has added the messages of the periods ahead. The caller has locked the subscribers.
-- p_periods has one element per user.
create or replace function headroom.end_earlier_periods(p_bucket smallint, p_users uuid[], p_periods text[])
    returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    -- The periods, each once, and those directly before them.
    v_periods constant text[] := array(select distinct one.label from unnest(p_periods) as one (label));
    v_before constant text[] := array(
        select headroom.period_label(headroom.label_cycle(one.label), headroom.label_day(one.label) - 1)
        from unnest(v_periods) with ordinality as one (label, ordinal)
        order by one.ordinal
    );
    v_ordinals integer[];
    v_user uuid;
    v_label text;
begin
    -- Nearly every user's row before is that of the period directly before, which needs no look at the cycle. There is
    -- no period before the one of a plan that never resets.
    v_ordinals := array(
        select request.ordinal::integer
        from unnest(p_users, p_periods) with ordinality as request (user_id, billing_period, ordinal)
        cross join lateral (
            select usage.billing_period from public.message_usage as usage
            where usage.bucket = p_bucket and usage.user_id = request.user_id
                and usage.billing_period < request.billing_period
            order by usage.billing_period desc
            limit 1
        ) as earlier
        where split_part(earlier.billing_period, '.', 1)
            <> v_before[array_position(v_periods, request.billing_period)]
    );
    for v_user, v_label in
        select request.user_id, split_part(earlier.billing_period, '.', 1)
        from (
            select
                p_users[one.ordinal] as user_id, p_periods[one.ordinal] as billing_period,
                headroom.label_cycle(p_periods[one.ordinal]) as cycle
            from unnest(v_ordinals) as one (ordinal)
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
