-- Returns the usage of the parts after p_messages are counted in them. The first message opens the window of a limit.
-- p_parts: headroom.requested_parts.
create or replace function headroom.add_to_parts(
    p_parts headroom.part_usage[], p_messages integer, p_at timestamptz
) returns headroom.part_usage[]
    language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp
as $$
declare
    v_part headroom.part_usage;
    v_messages bigint;
    v_counted headroom.part_usage[];
begin
    foreach v_part in array coalesce(p_parts, '{}') loop
        if v_part.counter is not null and v_part.kind <> 'fallback' then
            v_messages := p_messages::bigint
                * case v_part.kind when 'model' then 1 else headroom.weight_of(p_parts) end;
            v_part.used := least(v_part.used + v_messages, 2147483647);
            if v_part.window_opened_at is null and v_part.window_seconds is not null then
                v_part.window_opened_at := p_at;
                v_part.window_ends_at := p_at + make_interval(secs => v_part.window_seconds);
                v_part.window_used := 0;
                v_part.window_held := 0;
            end if;
            if v_part.window_opened_at is not null then
                v_part.window_used := least(v_part.window_used + v_messages, 2147483647);
            end if;
        end if;
        v_counted := v_counted || v_part;
    end loop;
    return v_counted;
end
$$;
