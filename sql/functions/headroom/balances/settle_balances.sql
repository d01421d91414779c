-- Takes from a user's balances what the usage row to which they are attached has counted since
-- (headroom.drawn_messages). The row keeps its limit. Returns its period; null without such a row. Locks the row.
create or replace function headroom.settle_balances(p_user_id uuid, p_at timestamptz) returns text
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_bucket constant smallint := headroom.bucket_of(p_user_id);
    v_period text;
    v_drawn integer;
    v_first_end timestamptz;
begin
    select
        usage.billing_period,
        headroom.drawn_messages(usage.message_count, usage.held, usage."limit", usage.extra, usage.usable_count),
        usage.extra_expires
    into v_period, v_drawn, v_first_end
    from public.message_usage as usage
    where usage.bucket = v_bucket and usage.user_id = p_user_id and usage.extra is not null
    for update;
    if v_drawn > 0 then
        perform headroom.settle_drawn(p_user_id, v_drawn, v_first_end, p_at);
        update public.message_usage
        set granted = least(coalesce(granted, 0)::bigint + v_drawn, 2147483647), extra = extra - v_drawn
        where bucket = v_bucket and user_id = p_user_id and billing_period = v_period;
    end if;
    return v_period;
end
$$;
