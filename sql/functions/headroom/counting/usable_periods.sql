-- Returns the ordinal in p_periods of the period in which each user is counted. p_period_ordinals: the ordinal that the
-- caller expects; 0 for a user whose usable row is looked for in all of p_periods. Normally one row of a user is
-- usable. A user with several, as after the clock was set back, gets -1, which no row has, and takes the slow path. A
-- user without one keeps 0.
--
-- p_users is ascending without duplicates.
create or replace function headroom.usable_periods(
    p_bucket smallint, p_users uuid[], p_periods text[], p_period_ordinals integer[]
) returns integer[]
    language plpgsql stable
as $$
declare
    v_ordinals integer[] := p_period_ordinals;
    v_user uuid;
    v_period text;
    v_ordinal integer;
begin
    if 0 = any(p_period_ordinals) then
        for v_user, v_period in
            select usage.user_id, usage.billing_period from public.message_usage as usage
            where usage.bucket = p_bucket and usage.billing_period = any(p_periods)
                and usage.user_id = any((
                    select array_agg(request.user_id)
                    from unnest(p_users, p_period_ordinals) as request (user_id, period_ordinal)
                    where request.period_ordinal = 0
                )::uuid[])
                and usage.usable_until > headroom.now()
        loop
            v_ordinal := width_bucket(v_user, p_users);
            v_ordinals[v_ordinal] := case v_ordinals[v_ordinal]
                when 0 then array_position(p_periods, v_period) else -1
            end;
        end loop;
    end if;
    return v_ordinals;
end
$$;
