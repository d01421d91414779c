-- Returns the start and the end of the period of a store's subscription at p_at. It is the first one, from p_started_at
-- to p_ends_at, or one of those that follow it, month by month or week by week (p_day: headroom.period_after). The
-- rules are those of PaidPeriods (Sources/Billing). It is null for another cycle, and if p_started_at is null.
--
-- p_paid_until: no later period begins within 3 days before it; the last one ends with it. At p_at after it, as in a
-- grace period, periods go on from it as if they were paid. If it is null, the paid time has no end.
--
-- It is in PL/pgSQL: inlined, its expressions took a third of the time of headroom.entitlements for one user. It
-- returns an array, because Citus distributes no view that takes fields of a function's result.
create or replace function headroom.paid_period(
    p_cycle text, p_started_at timestamptz, p_ends_at timestamptz, p_day integer, p_paid_until timestamptz,
    p_at timestamptz
) returns timestamptz[]
    language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
    v_is_over constant boolean := coalesce(p_at >= p_paid_until, false);
    v_origin constant timestamptz := case when v_is_over then p_paid_until else p_ends_at end;
    -- The last period begins before this instant.
    v_latest constant timestamptz := case
        when v_is_over or p_paid_until is null then timestamptz '9999-12-31Z' else p_paid_until - interval '72 hours'
    end;
    v_at constant timestamptz := least(p_at, v_latest - interval '1 microsecond');
    v_day integer := p_day;
    v_periods integer;
    v_resets_at timestamptz;
begin
    if p_started_at is null or p_cycle not in ('monthly', 'weekly') then
        return null;
    end if;
    if p_at < v_origin then
        return array[p_started_at, least(p_ends_at, p_paid_until)];
    end if;
    -- If the paid time ends on p_day, or on a shorter month's last day instead, months go on from p_day.
    if v_is_over and p_paid_until <> headroom.period_after('monthly', p_paid_until, p_day, 0) then
        v_day := extract(day from p_paid_until at time zone 'UTC');
    end if;
    v_periods := case
        when p_cycle = 'weekly' then floor(extract(epoch from v_at - v_origin) / 604800)
        else
            12 * extract(year from v_at at time zone 'UTC') + extract(month from v_at at time zone 'UTC')
            - 12 * extract(year from v_origin at time zone 'UTC') - extract(month from v_origin at time zone 'UTC')
    end;
    if headroom.period_after(p_cycle, v_origin, v_day, v_periods) > v_at then
        v_periods := v_periods - 1;
    end if;
    v_periods := greatest(v_periods, 0);
    v_resets_at := headroom.period_after(p_cycle, v_origin, v_day, v_periods + 1);
    return array[
        headroom.period_after(p_cycle, v_origin, v_day, v_periods),
        case when v_resets_at >= v_latest then coalesce(p_paid_until, v_resets_at) else v_resets_at end
    ];
end
$$;
