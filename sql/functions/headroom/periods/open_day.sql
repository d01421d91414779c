-- Returns the day of the period that is open for a user (headroom.period_day): p_clock_day, which is that of the period
-- which contains p_at, unless the user has already used a later one. In that case the anchor day has become later, the
-- time zone is another one, or the clock was set back. The latest used period stays open, so that no such change gives
-- its allowance twice. The dates of two time zones differ by up to two days.
--
-- A period beyond the next one counts only if it was not written while the clock was ahead, because its messages are
-- then moved (headroom.correct_clock_jump).
create or replace function headroom.open_day(p_user_id uuid, p_cycle text, p_clock_day date, p_at timestamptz)
    returns date
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_next_day constant date := headroom.next_period_day(p_cycle, p_clock_day);
    v_next constant text := headroom.period_label(p_cycle, v_next_day);
    v_last constant text := case p_cycle
        when 'daily' then headroom.period_label(p_cycle, headroom.next_period_day(p_cycle, v_next_day)) else v_next
    end;
begin
    return coalesce(
        (
            select max(headroom.label_day(usage.billing_period))
            from public.message_usage as usage
            where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
                and usage.billing_period in (v_next, v_last)
                and (usage.billing_period = v_next or usage.updated_at <= p_at + interval '1 hour')
                and not headroom.is_unused_usage_row(
                    usage.user_id, usage.billing_period, usage.message_count, usage.held, usage.released,
                    usage.granted, usage.plan, usage.plan_limit, usage."limit" - coalesce(usage.extra, 0),
                    usage.window_ends_at
                )
        ),
        p_clock_day
    );
end
$$;
