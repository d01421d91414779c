-- Returns the usage snapshot of a user with this entitlement. Writes nothing.
--
-- It is in PL/pgSQL, because PostgreSQL would plan a function in SQL again for each statement and each subtransaction.
create or replace function headroom.read_open_usage(p_entitlement headroom.entitlement) returns headroom.usage_snapshot
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_row public.message_usage;
    -- It is a variable, because PostgreSQL inlines headroom.build_usage_snapshot only with cheap arguments.
    v_window constant headroom.usage_window := headroom.open_window(
        p_entitlement.user_id, p_entitlement.window_seconds, headroom.now()
    );
begin
    select * into v_row from public.message_usage
    where bucket = headroom.bucket_of(p_entitlement.user_id) and user_id = p_entitlement.user_id
        and billing_period = p_entitlement.billing_period;
    return headroom.build_usage_snapshot(
        p_entitlement, v_row.message_count,
        case when v_row.held > 0 then headroom.held_messages(v_row.user_id, v_row.billing_period, v_row.held) end,
        headroom.effective_limit(
            v_row.plan, v_row.plan_limit, v_row."limit", v_row.granted, p_entitlement.allowance
        ),
        headroom.now(),
        v_window
    );
end
$$;
