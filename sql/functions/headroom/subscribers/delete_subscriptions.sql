-- Trigger function: deletes the subscriptions of a subscriber that is deleted manually, in the role that deletes it, so
-- that they are recorded. A foreign key would delete them as the table's owner.
create or replace function headroom.delete_subscriptions() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    delete from headroom.subscriptions where bucket = old.bucket and user_id = old.user_id;
    return old;
end
$$;
