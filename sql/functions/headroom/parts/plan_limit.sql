-- Returns the limit of a plan for a part of its messages: for those with the model p_name, or for those of a member.
-- All columns are null if it has none. Of models the name itself counts, or else the longest beginning of it.
--
-- They are those of headroom.plan_limits, whose type it does not return: Citus could not make a table of its own of it.
create or replace function headroom.plan_limit(
    p_plan text, p_kind text, p_name text, out plan text, out kind text, out name text, out label text,
    out allowance integer, out window_messages integer, out window_seconds integer, out weight integer,
    out fallback text
)
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    select
        limits.plan, limits.kind, limits.name, limits.label, limits.allowance, limits.window_messages,
        limits.window_seconds, limits.weight, limits.fallback
    into plan, kind, name, label, allowance, window_messages, window_seconds, weight, fallback
    from headroom.plan_limits as limits
    where limits.plan = p_plan and limits.kind = p_kind and (
        p_kind = 'member' or limits.name = p_name
        or right(limits.name, 1) = '*' and starts_with(p_name, left(limits.name, -1))
    )
    order by limits.name = p_name desc, length(limits.name) desc
    limit 1;
end
$$;
