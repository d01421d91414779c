-- Locks the usage row of a user and a period and returns it; all columns are null if there is none. Raises HR006 if the
-- row has a value that the constraints forbid.
create or replace function headroom.lock_usage(p_user_id uuid, p_billing_period text) returns public.message_usage
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_row public.message_usage;
begin
    select * into v_row from public.message_usage
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and billing_period = p_billing_period
    for update;
    if v_row.user_id is not null and not headroom.is_valid_usage_row(
        v_row.message_count, v_row.held, v_row.released, v_row.granted, v_row."limit", v_row.plan_limit,
        v_row.updated_at, v_row.started_at, v_row.resets_at, v_row.expires_at,
        v_row.window_count, v_row.window_held, v_row.window_limit
    ) then
        perform headroom.raise_invalid_row('public.message_usage', to_jsonb(v_row));
    end if;
    return v_row;
end
$$;
