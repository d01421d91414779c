-- Returns the model to offer instead of the one with which p_messages were refused; null if the plan names none, or if
-- they would be refused with it, too. p_parts: headroom.requested_parts.
create or replace function headroom.fallback_model(
    p_snapshot headroom.usage_snapshot, p_parts headroom.part_usage[], p_messages integer
) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_part headroom.part_usage;
    v_model text;
    v_others headroom.part_usage[] := '{}';
begin
    foreach v_part in array coalesce(p_parts, '{}') loop
        continue when v_part.kind = 'model';
        if v_part.kind = 'fallback' then
            v_model := v_part.name;
            v_part.kind := 'model';
        end if;
        v_others := v_others || v_part;
    end loop;
    return case when v_model is not null and headroom.snapshot_fits(p_snapshot, p_messages, v_others) then v_model end;
end
$$;
