-- Returns the allowances of a user: the period's, the window's, and those of the parts of the messages, each for the
-- period and for a window. A message must fit into each of them, and counts in each. A null limit is unlimited, or no
-- window. All decisions are made from this list.
--
-- p_parts: headroom.requested_parts, or null. p_cycle, p_allowance: of the snapshot's plan. They are null for a caller
-- that does not ask when messages come back.
create or replace function headroom.allowances(
    p_snapshot headroom.usage_snapshot, p_parts headroom.part_usage[], p_cycle text, p_allowance integer
) returns headroom.allowance[]
    language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp
as $$
declare
    v_weight constant integer := case when p_parts is null then 1 else headroom.weight_of(p_parts) end;
    v_reset constant timestamptz := p_snapshot.resets_at;
    -- A subscription that a store renews goes on: the end of what is paid is the usual end of its period, whose
    -- messages come back then.
    v_access_ends_at constant timestamptz := case
        when p_snapshot.renews and p_snapshot.state in ('active', 'free') then 'infinity'
        else coalesce(p_snapshot.expires_at, 'infinity')
    end;
    v_available_at constant timestamptz := case
        when p_cycle <> 'trial' and v_reset < v_access_ends_at and v_reset > p_snapshot.observed_at then v_reset
    end;
    v_allowances headroom.allowance[] := array[
        row(
            'period', p_snapshot."limit", p_snapshot.used, p_snapshot.used::bigint + p_snapshot.held, v_weight,
            p_allowance, v_reset, v_available_at
        )::headroom.allowance,
        row(
            'window', p_snapshot.window_limit, p_snapshot.window_used,
            p_snapshot.window_used::bigint + p_snapshot.window_held, v_weight, p_snapshot.window_limit,
            p_snapshot.window_ends_at,
            case when p_snapshot.window_ends_at < v_access_ends_at then p_snapshot.window_ends_at end
        )::headroom.allowance
    ];
    v_part headroom.part_usage;
    v_each integer;
begin
    if p_parts is null then
        return v_allowances;
    end if;
    foreach v_part in array p_parts loop
        continue when v_part.kind = 'fallback';
        v_each := case v_part.kind when 'model' then 1 else v_weight end;
        if v_part."limit" is not null then
            v_allowances := v_allowances || row(
                v_part.kind, v_part."limit", v_part.used, v_part.used::bigint + v_part.held, v_each, v_part."limit",
                v_reset, v_available_at
            )::headroom.allowance;
        end if;
        if v_part.window_limit is not null then
            v_allowances := v_allowances || row(
                v_part.kind, v_part.window_limit, coalesce(v_part.window_used, 0),
                coalesce(v_part.window_used::bigint + v_part.window_held, 0), v_each, v_part.window_limit,
                v_part.window_ends_at,
                case when v_part.window_ends_at < v_access_ends_at then v_part.window_ends_at end
            )::headroom.allowance;
        end if;
    end loop;
    return v_allowances;
end
$$;
