-- Returns how many messages of a user's allowances a message with these parts takes. p_parts may be null.
create or replace function headroom.weight_of(p_parts headroom.part_usage[]) returns integer
    language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp
as $$
declare
    v_part headroom.part_usage;
begin
    foreach v_part in array coalesce(p_parts, '{}') loop
        if v_part.kind = 'model' then
            return coalesce(v_part.weight, 1);
        end if;
    end loop;
    return 1;
end
$$;
