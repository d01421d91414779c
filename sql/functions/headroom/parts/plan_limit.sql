-- Returns the limit of a plan for a part of its messages: for those with the model p_name, or for those of a member.
-- All columns are null if it has none. Of models the name itself counts, or else the longest beginning of it.
create or replace function headroom.plan_limit(p_plan text, p_kind text, p_name text) returns headroom.plan_limits
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_limit headroom.plan_limits;
begin
    select limits.* into v_limit from headroom.plan_limits as limits
    where limits.plan = p_plan and limits.kind = p_kind and (
        p_kind = 'member' or limits.name = p_name
        or right(limits.name, 1) = '*' and starts_with(p_name, left(limits.name, -1))
    )
    order by limits.name = p_name desc, length(limits.name) desc
    limit 1;
    return v_limit;
end
$$;
