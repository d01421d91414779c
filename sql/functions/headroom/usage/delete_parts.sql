-- Trigger function: deletes what was counted of the parts of a deleted usage row's messages.
create or replace function headroom.delete_parts() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    delete from headroom.usage_parts
    where bucket = old.bucket and user_id = old.user_id and billing_period = old.billing_period;
    return null;
end
$$;
