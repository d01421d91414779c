-- Trigger function: ends the holds of a deleted usage row. Otherwise they would count in a new row of the same period.
-- They give back what they have taken from balances.
create or replace function headroom.end_holds() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    update headroom.message_keys set expires_at = '-infinity'
    where bucket = old.bucket and user_id = old.user_id and expires_at > headroom.now() and status = 'h'
        and billing_period = old.billing_period;
    perform headroom.return_expired_holds(old.user_id, headroom.now(), old.billing_period);
    return null;
end
$$;
