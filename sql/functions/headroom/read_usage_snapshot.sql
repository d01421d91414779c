-- Returns a user's usage snapshot now. Writes nothing: a trial that has not started is returned as if it started now.
--
-- In PL/pgSQL, because PostgreSQL would plan a function in SQL again for each statement and each subtransaction.
create or replace function headroom.read_usage_snapshot(p_user_id uuid, p_unknown_users_policy text)
    returns headroom.usage_snapshot
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_entitlement constant headroom.entitlement := headroom.entitlement(p_user_id, v_now, p_unknown_users_policy);
    v_row public.message_usage;
begin
    select * into v_row from public.message_usage
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id
        and billing_period = v_entitlement.billing_period;
    return headroom.build_usage_snapshot(
        v_entitlement, v_row.message_count,
        case when v_row.held > 0 then headroom.held_messages(p_user_id, v_row.billing_period, v_row.held) end,
        headroom.effective_limit(
            v_row.plan, v_row.plan_limit, v_row."limit", v_row.granted, v_entitlement.allowance
        ),
        v_now
    );
end
$$;
