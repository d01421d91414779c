-- Returns whether a user has a usage row in this billing period that was used (headroom.is_unused_usage_row).
create or replace function headroom.is_used_period(p_user_id uuid, p_billing_period text) returns boolean
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (
        select from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
            and usage.billing_period = p_billing_period
            and not headroom.is_unused_usage_row(
                usage.user_id, usage.billing_period, usage.message_count, usage.held, usage.released, usage.granted,
                usage.plan, usage.plan_limit, usage."limit", usage.window_ends_at
            )
    );
end
$$;
