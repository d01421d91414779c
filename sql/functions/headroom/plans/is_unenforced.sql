-- Returns whether the limit of a plan is counted and not enforced.
create or replace function headroom.is_unenforced(p_plan text) returns boolean
    language sql stable
    return exists (select from headroom.plans as plans where plans.plan = p_plan and not plans.enforced);
