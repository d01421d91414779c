-- Returns whether p_messages fit into each of the allowances. p_parts: headroom.requested_parts.
create or replace function headroom.snapshot_fits(
    p_snapshot headroom.usage_snapshot, p_messages integer, p_parts headroom.part_usage[] default null
) returns boolean
    language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp
as $$
declare
    v_allowance headroom.allowance;
begin
    foreach v_allowance in array headroom.allowances(p_snapshot, p_parts, null, null) loop
        if v_allowance.taken + p_messages::bigint * v_allowance.weight > v_allowance."limit" then
            return false;
        end if;
    end loop;
    return true;
end
$$;
