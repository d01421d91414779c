-- Trigger function: keeps all subscribers as they are until the transaction ends. A plan that gets another name is
-- replaced in subscribers and then in their usage rows, in that order. Without this lock there is a deadlock: a change
-- of a subscription locks its subscriber, then waits for the plan; the renaming locks the plan, then waits for the
-- subscriber.
create or replace function headroom.lock_subscribers() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if not headroom.is_distributed() then
        lock table headroom.subscribers in exclusive mode;
    end if;
    return null;
end
$$;
