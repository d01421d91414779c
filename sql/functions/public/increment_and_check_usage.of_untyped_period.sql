-- Is what PostgreSQL takes the call increment_and_check_usage($1, $2, $3) for if the driver sends texts without a type,
-- or a null limit: without it, the call would be ambiguous, because the third parameter of the form with parts is a
-- text. The limit has no name, so that a call by names finds the other function.
create or replace function public.increment_and_check_usage(
    p_user_id uuid, p_billing_period text, text
) returns jsonb
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    return public.increment_and_check_usage(p_user_id, p_billing_period, $3::integer);
end
$$;
alter function public.increment_and_check_usage(uuid, text, text) owner to headroom_owner;
