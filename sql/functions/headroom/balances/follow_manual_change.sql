-- Settles the balances of a usage row whose count or limit was changed by hand: what was taken before stays taken, a
-- higher count takes more, and the new limit includes what is left, as the old one did. p_count to p_usable_count: the
-- columns before the change.
create or replace function headroom.follow_manual_change(
    p_user_id uuid, p_billing_period text, p_count integer, p_held integer, p_limit integer, p_extra integer,
    p_first_end timestamptz, p_usable_count integer
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_bucket constant smallint := headroom.bucket_of(p_user_id);
    v_now constant timestamptz := headroom.now();
    v_drawn constant integer := headroom.drawn_messages(p_count, p_held, p_limit, p_extra, p_usable_count);
    v_beyond bigint;
begin
    perform headroom.settle_drawn(p_user_id, v_drawn, p_first_end, v_now);
    update public.message_usage
    set granted = nullif(least(coalesce(granted, 0)::bigint + v_drawn, 2147483647), 0),
        "limit" = case when "limit" is not null then greatest("limit" - p_extra + v_drawn, 0) end,
        extra = null, extra_expires = null, usable_count = null, usable_until = '-infinity'
    where bucket = v_bucket and user_id = p_user_id and billing_period = p_billing_period;
    perform headroom.return_expired_holds(p_user_id, v_now);
    select case
        -- LEAST skips nulls.
        when usage."limit" is not null then least(
            usage.message_count::bigint
            + headroom.held_messages(p_user_id, p_billing_period, usage.held) - usage."limit",
            usage.message_count - p_count
        )
    end into v_beyond
    from public.message_usage as usage
    where usage.bucket = v_bucket and usage.user_id = p_user_id and usage.billing_period = p_billing_period;
    perform headroom.take_messages(p_user_id, p_billing_period, v_beyond, v_now);
    perform headroom.attach_balances(p_user_id, p_billing_period, v_now);
end
$$;
