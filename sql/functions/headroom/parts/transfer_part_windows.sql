-- Raises the open windows of a receiver's models and members to those of the giver, by the rules of
-- headroom.transfer_window. Returns what headroom.revert_transferred_part_windows needs; null if nothing was raised.
-- The caller has locked the receiver's usage rows.
--
-- p_plan: the receiver's plan if it was transferred, else null. p_billing_period: headroom.receiving_period.
create or replace function headroom.transfer_part_windows(
    p_giver uuid, p_receiver uuid, p_plan text, p_billing_period text
) returns jsonb
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_part record;
    v_given record;
    v_own record;
    v_opened_at timestamptz;
    v_ends_at timestamptz;
    v_used integer;
    v_limit headroom.plan_limits;
    v_raised jsonb;
begin
    if p_billing_period is null then
        return null;
    end if;
    for v_part in
        select parts.kind, parts.name, max(parts."limit") as "limit", max(parts.window_limit) as window_limit
        from headroom.usage_parts as parts
        where parts.bucket = headroom.bucket_of(p_giver) and parts.user_id = p_giver
            and parts.window_ends_at > headroom.now()
        group by parts.kind, parts.name
        order by parts.kind, parts.name
    loop
        select counted.* into v_given from headroom.read_parts(
            headroom.bucket_of(p_giver), array[p_giver], array[p_billing_period], array[v_part.kind], array[v_part.name]
        ) as counted;
        v_limit := headroom.plan_limit(p_plan, v_part.kind, v_part.name);
        v_ends_at := headroom.window_end(v_given.window_opened_at, v_given.window_ends_at, v_limit.window_seconds);
        v_used := least(v_given.window_used::bigint + v_given.window_held, 2147483647);
        continue when not coalesce(v_used > 0 and v_ends_at > headroom.now(), false);
        select counted.* into v_own from headroom.read_parts(
            headroom.bucket_of(p_receiver), array[p_receiver], array[p_billing_period], array[v_part.kind],
            array[v_part.name]
        ) as counted;
        v_own.window_ends_at := headroom.window_end(
            v_own.window_opened_at, v_own.window_ends_at, v_limit.window_seconds
        );
        if v_own.window_ends_at <= headroom.now() then
            v_own.window_ends_at := null;
            v_own.window_used := 0;
            v_own.window_held := 0;
        end if;
        v_opened_at := v_given.window_opened_at;
        if v_own.window_ends_at >= v_ends_at then
            v_opened_at := v_own.window_opened_at;
            v_ends_at := v_own.window_ends_at;
            continue when v_own.window_used >= v_used;
        end if;
        v_used := greatest(v_own.window_used, v_used);
        -- The receiver's own messages and holds are now those of this window.
        if v_own.window_ends_at is not null then
            perform headroom.move_part_window(
                p_receiver, v_part.kind, v_part.name, v_own.window_opened_at, v_opened_at
            );
        end if;
        perform headroom.write_parts(
            headroom.bucket_of(p_receiver), array[p_receiver], array[p_billing_period], array[v_part.kind],
            array[v_part.name], array[v_own.generation], array[v_own.used], array[v_own.held], array[v_part."limit"],
            array[v_opened_at], array[v_ends_at], array[v_used], array[v_own.window_held], array[v_part.window_limit],
            array[v_own.holds_end_at]
        );
        v_raised := coalesce(v_raised, '[]') || jsonb_build_object(
            'kind', v_part.kind, 'name', v_part.name, 'opened_at', v_opened_at,
            'messages', v_used - v_own.window_used, 'own_end', v_own.window_ends_at
        );
    end loop;
    return v_raised;
end
$$;
