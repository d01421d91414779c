-- Trigger function: makes the copies of plans in usage rows outdated.
create or replace function headroom.increment_plan_revision() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    update headroom.plan_revision set revision = revision + 1;
    return null;
end
$$;
