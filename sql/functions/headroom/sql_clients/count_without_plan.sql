-- Counts one message of a user without a plan, in the caller's period and under the caller's limit; null is unlimited.
-- Locks the usage row.
create or replace function headroom.count_without_plan(
    p_user_id uuid, p_billing_period text, p_limit integer
) returns jsonb
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_row constant public.message_usage := headroom.lock_usage(p_user_id, p_billing_period);
    -- This is computed while the row is locked, so that a concurrent hold is included. An expired hold must not refuse
    -- a message.
    v_held constant integer := headroom.held_messages(p_user_id, p_billing_period, v_row.held);
    v_used integer;
begin
    if coalesce(p_limit, 1) > 0 then
        insert into public.message_usage as usage (bucket, user_id, billing_period, message_count, "limit", updated_at)
        values (headroom.bucket_of(p_user_id), p_user_id, p_billing_period, 1, p_limit, headroom.now())
        on conflict (user_id, billing_period) do update
        set message_count = least(usage.message_count::bigint + 1, 2147483647), held = v_held,
            "limit" = case when usage.plan is null then excluded."limit" else usage."limit" end,
            updated_at = excluded.updated_at
        where headroom.fits(1, usage.message_count, v_held, p_limit)
        returning usage.message_count into v_used;
    end if;
    return headroom.count_result(v_used is not null, coalesce(v_used, v_row.message_count, 0), v_held, p_limit);
end
$$;
