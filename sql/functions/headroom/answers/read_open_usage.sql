-- Returns the usage snapshot of a user with this entitlement. Writes nothing.
--
-- It is in PL/pgSQL, because PostgreSQL would plan a function in SQL again for each statement and each subtransaction.
create or replace function headroom.read_open_usage(p_entitlement headroom.entitlement) returns headroom.usage_snapshot
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_row public.message_usage;
    v_drawn integer;
    v_returned integer;
    -- It is a variable, because PostgreSQL inlines headroom.build_usage_snapshot only with cheap arguments.
    v_window constant headroom.usage_window := headroom.open_window(
        p_entitlement.user_id, p_entitlement.window_seconds, v_now
    );
    v_snapshot headroom.usage_snapshot;
begin
    select * into v_row from public.message_usage
    where bucket = headroom.bucket_of(p_entitlement.user_id) and user_id = p_entitlement.user_id
        and billing_period = p_entitlement.billing_period;
    if p_entitlement.has_balances then
        -- The row as headroom.detach_balances would leave it.
        v_drawn := headroom.drawn_messages(
            v_row.message_count, v_row.held, v_row."limit", v_row.extra, v_row.usable_count
        );
        select coalesce(sum(holds.messages), 0) into v_returned
        from headroom.expired_balance_holds(p_entitlement.user_id, v_now) as holds
        where holds.billing_period = p_entitlement.billing_period;
        v_row."limit" := headroom.plain_limit(
            v_row.message_count, v_row.held, v_row."limit", v_row.extra, v_row.usable_count
        ) - v_returned;
        v_row.granted := coalesce(v_row.granted, 0) + v_drawn - v_returned;
    end if;
    v_snapshot := headroom.build_usage_snapshot(
        p_entitlement, v_row.message_count,
        case when v_row.held > 0 then headroom.held_messages(v_row.user_id, v_row.billing_period, v_row.held) end,
        headroom.effective_limit(
            v_row.plan, v_row.plan_limit, v_row."limit", v_row.granted, p_entitlement.allowance
        ),
        v_now,
        v_window
    );
    if p_entitlement.has_balances then
        return headroom.add_balances(v_snapshot, headroom.live_balances(p_entitlement.user_id, v_now));
    end if;
    return v_snapshot;
end
$$;
