-- Returns the messages of a part that are held now, in the period and in the open window (headroom.read_parts). Views
-- call it for rows whose holds may have expired.
create or replace function headroom.part_holds(
    p_user_id uuid, p_billing_period text, p_kind text, p_name text, out held integer, out window_held integer
)
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
begin
    select counted.held, counted.window_held into held, window_held
    from headroom.read_parts(
        headroom.bucket_of(p_user_id), array[p_user_id], array[p_billing_period], array[p_kind], array[p_name]
    ) as counted;
end
$$;
