-- Returns the period of the usage row that gets a transferred window: the receiver's open period if it has a row, else
-- that of the newest row. It is null without a row: the receiver has passed the subscription on before it gave access.
create or replace function headroom.receiving_period(p_receiver uuid, p_billing_period text) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select usage.billing_period
        from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(p_receiver) and usage.user_id = p_receiver
        order by usage.billing_period = p_billing_period desc, usage.updated_at desc
        limit 1
    );
end
$$;
