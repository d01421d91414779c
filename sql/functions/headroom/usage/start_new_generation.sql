-- Trigger function: gives a usage row a new generation when its count was lowered without a release, even by a plain
-- UPDATE. The service's own statements raise the count, or raise "released" by the same number, and do not fire the
-- trigger. "released" still shows that the row was used.
create or replace function headroom.start_new_generation() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    -- It is a variable, because Citus sends no UPDATE that calls nextval.
    v_generation constant bigint := nextval('headroom.generations');
begin
    update public.message_usage set generation = v_generation,
        released = least(released::bigint + old.message_count - new.message_count, 2147483647)
    where bucket = new.bucket and user_id = new.user_id and billing_period = new.billing_period;
    return null;
end
$$;
