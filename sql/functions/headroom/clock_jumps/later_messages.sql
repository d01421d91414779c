-- Returns the messages that a user was counted in periods after the next one while the clock was ahead: their rows are
-- dated more than an hour after p_at. They count in the open period (headroom.correct_clock_jump). p_day: the day of
-- the open period (headroom.period_day). It is null without such a row.
create or replace function headroom.later_messages(
    p_user_id uuid, p_cycle text, p_day date, p_at timestamptz
) returns integer
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select least(sum(usage.message_count), 2147483647)
        from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
            and usage.billing_period > headroom.period_label(p_cycle, headroom.next_period_day(p_cycle, p_day))
            and usage.updated_at > p_at + interval '1 hour' and headroom.label_cycle(usage.billing_period) = p_cycle
        having count(*) > 0
    );
end
$$;
