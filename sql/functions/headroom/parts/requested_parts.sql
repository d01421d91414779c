-- Returns the usage of the parts that a request names: of the model, then of the member. It is null for a request
-- without them. The last element may be the model that the plan offers instead, with the kind fallback.
create or replace function headroom.requested_parts(
    p_user_id uuid, p_plan text, p_billing_period text, p_model text, p_member uuid
) returns headroom.part_usage[]
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_kinds text[] := '{}';
    v_names text[] := '{}';
    v_parts headroom.part_usage[];
    v_fallback headroom.part_usage;
begin
    if p_model is null and p_member is null then
        return null;
    end if;
    if p_model is not null then
        v_kinds := v_kinds || 'model'::text;
        v_names := v_names || p_model;
    end if;
    if p_member is not null then
        v_kinds := v_kinds || 'member'::text;
        v_names := v_names || p_member::text;
    end if;
    v_parts := array(
        select part from headroom.read_part_usages(p_user_id, p_plan, p_billing_period, v_kinds, v_names) as part
    );
    if (v_parts[1]).fallback is not null then
        select part.* into v_fallback from headroom.read_part_usages(
            p_user_id, p_plan, p_billing_period, array['model'], array[(v_parts[1]).fallback]
        ) as part;
        v_fallback.kind := 'fallback';
        v_parts := v_parts || v_fallback;
    end if;
    return v_parts;
end
$$;
