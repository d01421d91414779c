-- A row that an operator deletes takes what it held with it: a hold must not come back in a new row that does not know of
-- it.
create or replace function headroom.end_holds() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    update headroom.message_keys set expires_at = '-infinity'
    where bucket = old.bucket and user_id = old.user_id and status = 'h' and billing_period = old.billing_period;
    return null;
end
$$;
alter function headroom.end_holds() owner to headroom_service;
