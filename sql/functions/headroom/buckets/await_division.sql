-- Waits for a step of headroom.divide_users. Batches and changes begin with it. The next step waits for this
-- transaction, and so sees the users that it creates. Call it before the first row of a user is locked, because the
-- step waits for such rows.
create or replace function headroom.await_division() returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform pg_advisory_xact_lock_shared(hashtextextended('headroom.divide_users', 0));
end
$$;
