-- Returns whether a plan is unenforced: its limits count and refuse nothing.
create or replace function headroom.is_unenforced(p_plan text) returns boolean
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (select from headroom.plans as plans where plans.plan = p_plan and not plans.enforced);
end
$$;
