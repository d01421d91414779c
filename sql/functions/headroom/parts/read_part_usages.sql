-- Returns the usage of parts of a user's messages under a plan, in the order of p_kinds and p_names, which have the
-- models and members as requests name them. A window is open until the end that follows from the plan's present length.
create or replace function headroom.read_part_usages(
    p_user_id uuid, p_plan text, p_billing_period text, p_kinds text[], p_names text[]
) returns setof headroom.part_usage
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_limit headroom.plan_limits;
    v_part headroom.part_usage;
    v_counted record;
begin
    for v_one in 1 .. cardinality(p_kinds) loop
        v_limit := headroom.plan_limit(p_plan, p_kinds[v_one], p_names[v_one]);
        v_part := null;
        v_part.kind := p_kinds[v_one];
        v_part.name := p_names[v_one];
        if v_limit.plan is not null then
            v_part.counter := case when v_limit.kind = 'member' then p_names[v_one] else v_limit.name end;
            v_part.label := v_limit.label;
            v_part."limit" := v_limit.allowance;
            v_part.window_limit := v_limit.window_messages;
            v_part.window_seconds := v_limit.window_seconds;
            v_part.weight := v_limit.weight;
            v_part.fallback := v_limit.fallback;
            select counted.* into strict v_counted from headroom.read_parts(
                headroom.bucket_of(p_user_id), array[p_user_id], array[p_billing_period], array[v_part.kind],
                array[v_part.counter]
            ) as counted;
            v_part.generation := v_counted.generation;
            v_part.used := coalesce(v_counted.used, 0);
            v_part.held := coalesce(v_counted.held, 0);
            v_part.holds_end_at := v_counted.holds_end_at;
            v_part.window_ends_at := headroom.window_end(
                v_counted.window_opened_at, v_counted.window_ends_at, v_limit.window_seconds
            );
            -- A limit without windows now counts nothing in one that is open.
            if v_limit.window_seconds is not null and v_part.window_ends_at > headroom.now() then
                v_part.window_opened_at := v_counted.window_opened_at;
                v_part.window_used := v_counted.window_used;
                v_part.window_held := v_counted.window_held;
            else
                v_part.window_ends_at := null;
            end if;
        end if;
        return next v_part;
    end loop;
end
$$;
