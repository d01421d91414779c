-- Returns which of the allowances with this name is the fullest, of equally full ones the first; null if there is none.
-- All that are used up are equally full. p_allowances: headroom.allowances.
create or replace function headroom.fuller_allowance(
    p_allowances headroom.allowance[], p_name text
) returns headroom.allowance
    language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp
as $$
declare
    v_one headroom.allowance;
    v_fullest headroom.allowance;
begin
    foreach v_one in array p_allowances loop
        -- The shares are compared by cross products, because a division would round.
        if v_one.name = p_name and (
            v_fullest.name is null or v_fullest.taken < v_fullest."limit" and (
                v_one.taken >= v_one."limit"
                or v_one.taken * v_fullest."limit" > v_fullest.taken * v_one."limit"
            )
        ) then
            v_fullest := v_one;
        end if;
    end loop;
    return v_fullest;
end
$$;
