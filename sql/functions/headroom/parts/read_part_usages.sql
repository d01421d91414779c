-- Returns the usage of parts of a user's messages under a plan, in the order of p_kinds and p_names, which have the
-- models and members as requests name them. A window is open until the end that follows from the plan's present length.
create or replace function headroom.read_part_usages(
    p_user_id uuid, p_plan text, p_billing_period text, p_kinds text[], p_names text[]
) returns setof headroom.part_usage
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    with limited as materialized (
        select
            request.ordinality, request.kind, request.name,
            case limits.kind when 'member' then request.name else limits.name end as counter, limits.label,
            limits.allowance, limits.window_messages, limits.window_seconds, limits.weight, limits.fallback
        from unnest(p_kinds, p_names) with ordinality as request (kind, name)
        cross join lateral headroom.plan_limit(p_plan, request.kind, request.name) as limits
    )
    select
        limited.kind, limited.name, limited.counter, limited.label, limited.allowance, limited.window_messages,
        limited.window_seconds, limited.weight, limited.fallback, counted.generation, counted.used, counted.held,
        opened.window_opened_at, opened.window_ends_at, opened.window_used, opened.window_held, counted.holds_end_at
    from limited
    left join headroom.read_parts(
        headroom.bucket_of(p_user_id), array_fill(p_user_id, array[cardinality(p_kinds)]),
        array_fill(p_billing_period, array[cardinality(p_kinds)]), p_kinds,
        array(select limited.counter from limited order by limited.ordinality)
    ) as counted on counted.ordinal = limited.ordinality and limited.counter is not null
    -- A limit without windows now counts nothing in one that is open.
    left join lateral (
        select
            counted.window_opened_at, counted.window_used, counted.window_held, headroom.window_end(
                counted.window_opened_at, counted.window_ends_at, limited.window_seconds
            ) as window_ends_at
    ) as opened on limited.window_seconds is not null and opened.window_ends_at > headroom.now()
    order by limited.ordinality;
end
$$;
