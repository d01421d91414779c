-- Raises 22023 unless a caller of headroom.count_in_period may name this period. Otherwise end users could create any
-- number of rows, each with an allowance.
--
-- p_open_period: the open period of a user with a plan. It stands for the calendar month (UTC) and for trial, too,
-- because callers that have no information about Headroom's plans name one of these. If it is null, the user has no
-- plan, and the caller decides. The caller may name a plan that never resets, or a month, a week or a day that has
-- begun. An end user may name the present ones of any time zone, and the month before, because a month may begin on any
-- day.
create or replace function headroom.check_period_label(p_label text, p_open_period text) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    -- The caller is the same as in headroom.check_caller.
    v_caller constant name := coalesce(nullif(current_setting('role', true), 'none'), session_user);
    v_cycle constant text := headroom.label_cycle(p_label);
    v_day constant date := headroom.label_day(p_label);
begin
    if p_open_period is not null then
        if p_label not in (
            p_open_period, headroom.period_label('monthly', headroom.period_day('monthly', v_now, 1, 'UTC')), 'trial'
        ) then
            raise exception 'this user''s open period is %, not %', p_open_period, quote_literal(p_label)
                using errcode = 'invalid_parameter_value',
                    hint = 'Name that period, the current month (YYYY-MM, UTC) or trial: each stands for the open '
                        'period.';
        end if;
        return;
    end if;
    if v_cycle is not null
        -- No time zone is more than 14 hours ahead of UTC, or more than 12 behind it.
        and v_day <= headroom.period_day(v_cycle, v_now + interval '14 hours', 1, 'UTC')
        and (
            has_function_privilege(v_caller, 'public.reset_usage(uuid, text, text, uuid)', 'EXECUTE')
            or v_day >= case v_cycle
                when 'monthly' then headroom.period_day(v_cycle, v_now, 1, 'UTC') - interval '1 month'
                else headroom.period_day(v_cycle, v_now - interval '12 hours', 1, 'UTC')
            end
        )
        or exists (select from headroom.plans where plan = p_label and not headroom.is_periodic(cycle)) then
        return;
    end if;
    raise exception 'there is no period % to count in', quote_literal(p_label)
        using errcode = 'invalid_parameter_value',
            hint = 'Name the current month (YYYY-MM, UTC), week (YYYY-Www) or day (YYYY-MM-DD), or a plan that never '
                'resets, such as trial.';
end
$$;
