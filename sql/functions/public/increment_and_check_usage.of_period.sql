-- Counts one message for callers that name a period and a limit: see headroom.count_in_period.
create or replace function public.increment_and_check_usage(
    p_user_id uuid, p_billing_period text, p_limit integer
) returns jsonb
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform headroom.check_caller(p_user_id);
    return headroom.count_in_period(p_user_id, p_billing_period, p_limit);
end
$$;
alter function public.increment_and_check_usage(uuid, text, integer) owner to headroom_owner;
