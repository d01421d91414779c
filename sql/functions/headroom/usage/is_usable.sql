-- Returns whether a usage row can be counted in and answered from as it is: no date has passed on which plan, state or
-- period may change, the plans were not edited since, and the row is not dated ahead. Such a row was written while
-- the clock was ahead, and the slow path corrects it. PostgreSQL inlines the function.
--
-- The first three parameters are columns of the row. p_revision: the revision in headroom.plan_revision.
create or replace function headroom.is_usable(
    p_usable_until timestamptz, p_updated_at timestamptz, p_plan_revision integer, p_revision integer, p_at timestamptz
) returns boolean
    language sql stable parallel safe
    return p_usable_until > p_at and p_updated_at <= p_at + interval '1 hour' and p_plan_revision = p_revision;
