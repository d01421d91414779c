-- A count that falls without a release is a reset, also by a plain UPDATE. The service's statements raise counts, or
-- raise "released" with what they take off, so the condition spares them. "released" still tells that the row was used.
create or replace function headroom.start_new_generation() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    update public.message_usage set generation = nextval('headroom.generations'),
        released = least(released::bigint + old.message_count - new.message_count, 2147483647)
    where bucket = new.bucket and user_id = new.user_id and billing_period = new.billing_period;
    return null;
end
$$;
alter function headroom.start_new_generation() owner to headroom_service;
