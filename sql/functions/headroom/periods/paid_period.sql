-- Returns the period of a store's subscription at p_at: the first one, from p_started_at to p_ends_at, or one of those
-- that follow it, month by month or week by week (p_day: headroom.period_after). The same rules as in PaidPeriods
-- (Sources/Billing).
--
-- p_paid_until: no later period begins within 3 days before it; the last one ends with it. At p_at after it, as in a
-- grace period, periods go on from it as if they were paid. Null: the paid time has no end. No row if p_started_at is
-- null, or for another cycle.
--
-- PostgreSQL inlines the function. Each offset keeps a value from being computed for each of its uses.
create or replace function headroom.paid_period(
    p_cycle text, p_started_at timestamptz, p_ends_at timestamptz, p_day integer, p_paid_until timestamptz,
    p_at timestamptz
) returns table (begins_at timestamptz, resets_at timestamptz)
    language sql immutable
begin atomic
    select
        case when begun.is_first then p_started_at else begun.begins_at end as begins_at,
        case
            when begun.is_first then least(p_ends_at, p_paid_until)
            when begun.next_at < begun.latest then begun.next_at
            else coalesce(p_paid_until, begun.next_at)
        end as resets_at
    from (
        select
            counted.is_first, counted.latest,
            headroom.period_after(p_cycle, counted.origin, counted.day, counted.periods) as begins_at,
            headroom.period_after(p_cycle, counted.origin, counted.day, counted.periods + 1) as next_at
        from (
            select
                estimated.is_first, estimated.latest, estimated.origin, estimated.day,
                greatest(estimated.periods - (
                    headroom.period_after(p_cycle, estimated.origin, estimated.day, estimated.periods) > estimated.at
                )::integer, 0) as periods
            from (
                select
                    based.*, p_at < based.origin as is_first,
                    case
                        when p_cycle = 'weekly' then floor(extract(epoch from based.at - based.origin) / 604800)
                        else
                            12 * extract(year from based.at at time zone 'UTC')
                            + extract(month from based.at at time zone 'UTC')
                            - 12 * extract(year from based.origin at time zone 'UTC')
                            - extract(month from based.origin at time zone 'UTC')
                    end::integer as periods
                from (
                    select
                        limited.*, least(p_at, limited.latest - interval '1 microsecond') as at
                    from (
                        select
                            case when p_at >= p_paid_until then p_paid_until else p_ends_at end as origin,
                            case
                                when p_at < p_paid_until or p_paid_until is null then p_day
                                -- As p_day, if that is a shorter month's last day.
                                when p_paid_until = headroom.period_after('monthly', p_paid_until, p_day, 0) then p_day
                                else extract(day from p_paid_until at time zone 'UTC')::integer
                            end as day,
                            case
                                when p_at >= p_paid_until or p_paid_until is null then timestamptz '9999-12-31Z'
                                else p_paid_until - interval '72 hours'
                            end as latest
                        where p_started_at is not null and p_cycle in ('monthly', 'weekly')
                        offset 0
                    ) as limited
                    offset 0
                ) as based
                offset 0
            ) as estimated
            offset 0
        ) as counted
        offset 0
    ) as begun;
end;
grant execute on function headroom.paid_period(text, timestamptz, timestamptz, integer, timestamptz, timestamptz)
to headroom_operator, headroom_dashboard;
