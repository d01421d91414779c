-- One notification at a time, whoever takes it: whose a subscription is depends on what is told of others. It comes before
-- every lock on a user, and whoever holds it waits for nobody else who wants it.
create or replace function headroom.lock_store_notifications() returns void
    language sql
begin atomic
    select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('headroom.store_notifications', 0));
end;
revoke all on function headroom.lock_store_notifications() from public;
grant execute on function headroom.lock_store_notifications() to headroom_service;
