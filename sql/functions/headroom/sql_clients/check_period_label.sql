-- Raises 22023 unless a caller of headroom.count_in_period may name this period. Otherwise end users could create any
-- number of rows, each with an allowance.
--
-- p_open_period: the open period of a user with a plan. It stands for the calendar month (UTC) and for trial too,
-- because callers that know nothing of Headroom's plans name one of these. Null: the user has no plan, and the caller
-- decides. It may name a plan that never resets, or a month that has begun; an end user may name this month or
-- the month before, since no time zone and no start day makes an older month the present one.
create or replace function headroom.check_period_label(p_label text, p_open_period text) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamp := headroom.now() at time zone 'UTC';
    -- As in headroom.check_caller.
    v_caller constant name := coalesce(nullif(current_setting('role', true), 'none'), session_user);
    -- No time zone is more than 14 hours ahead of UTC.
    v_newest_month constant text := headroom.month_label((v_now + interval '14 hours')::date);
    v_oldest_month text := '0000-00';
begin
    if p_open_period is not null then
        if p_label not in (p_open_period, headroom.month_label(v_now::date), 'trial') then
            raise exception 'this user''s open period is %, not %', p_open_period, quote_literal(p_label)
                using errcode = 'invalid_parameter_value',
                    hint = 'Name that period, the current month (YYYY-MM, UTC) or trial: each stands for the open '
                        'period.';
        end if;
        return;
    end if;
    if not has_function_privilege(v_caller, 'public.reset_usage(uuid, text)', 'EXECUTE') then
        v_oldest_month := headroom.month_label((date_trunc('month', v_now) - interval '1 month')::date);
    end if;
    if headroom.is_month(p_label) and p_label between v_oldest_month and v_newest_month
        or exists (select from headroom.plans where plan = p_label and cycle <> 'monthly') then
        return;
    end if;
    raise exception 'there is no period % to count in', quote_literal(p_label)
        using errcode = 'invalid_parameter_value',
            hint = 'Name the current month (YYYY-MM, UTC), or a plan that never resets, such as trial.';
end
$$;
