-- Makes the copies of plans in usage rows out of date.
create or replace function headroom.plans_changed() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    update headroom.plan_revision set revision = revision + 1;
    return null;
end
$$;
alter function headroom.plans_changed() owner to headroom_service;
