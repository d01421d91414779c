-- Writes what is counted and held of limits for parts of users' messages, as headroom.read_parts has read it, with what
-- was counted since. Each array has one element for each row. The caller has locked the users since it has read.
--
-- p_generations: for rows to insert, null for the next one; others keep theirs. p_window_opened_at to p_window_held:
-- the open window, which is then in this row alone. Without one, the row keeps an ended window, or that of a limit that
-- has no windows now.
create or replace function headroom.write_parts(
    p_bucket smallint, p_users uuid[], p_periods text[], p_kinds text[], p_names text[], p_generations bigint[],
    p_used integer[], p_held integer[], p_limits integer[], p_window_opened_at timestamptz[],
    p_window_ends_at timestamptz[], p_window_used integer[], p_window_held integer[], p_window_limits integer[],
    p_holds_end_at timestamptz[]
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_latest constant timestamptz := v_now + interval '1 hour';
    v_ordinal integer;
begin
    insert into headroom.usage_parts as parts (
        bucket, user_id, billing_period, kind, name, generation, updated_at, used, held, "limit", window_opened_at,
        window_ends_at, window_used, window_held, window_limit, holds_end_at
    )
    select
        p_bucket, part.user_id, part.billing_period, part.kind, part.name,
        coalesce(part.generation, headroom.next_generation()), v_now, part.used, part.held, part."limit",
        part.window_opened_at, part.window_ends_at,
        case when part.window_opened_at is not null then part.window_used end,
        case when part.window_opened_at is not null then part.window_held end, part.window_limit, part.holds_end_at
    from unnest(
        p_users, p_periods, p_kinds, p_names, p_generations, p_used, p_held, p_limits, p_window_opened_at,
        p_window_ends_at, p_window_used, p_window_held, p_window_limits, p_holds_end_at
    ) as part (
        user_id, billing_period, kind, name, generation, used, held, "limit", window_opened_at, window_ends_at,
        window_used, window_held, window_limit, holds_end_at
    )
    -- There are no parameters from here on: Citus cannot pass them to the machine that has the rows.
    on conflict (bucket, user_id, billing_period, kind, name) do update
    set updated_at = excluded.updated_at, used = excluded.used, held = excluded.held, "limit" = excluded."limit",
        window_opened_at = coalesce(excluded.window_opened_at, parts.window_opened_at),
        window_ends_at = case
            when excluded.window_opened_at is null then parts.window_ends_at else excluded.window_ends_at
        end,
        window_used = case
            when excluded.window_opened_at is null then parts.window_used else excluded.window_used
        end,
        window_held = case
            when excluded.window_opened_at is null then parts.window_held else excluded.window_held
        end,
        window_limit = excluded.window_limit,
        -- A window that is kept has holds, too, which end then.
        holds_end_at = case
            when excluded.window_opened_at is null and parts.window_held > 0
                then least(excluded.holds_end_at, parts.holds_end_at)
            else excluded.holds_end_at
        end;
    -- A limit has one window for each user, in one row: an open one was moved into this row, and a new one takes the
    -- place of one that the present plan has ended. One that opened while the clock was ahead stays.
    for v_ordinal in
        select part.ordinal from unnest(p_window_opened_at) with ordinality as part (window_opened_at, ordinal)
        where part.window_opened_at is not null
    loop
        update headroom.usage_parts as parts
        set window_opened_at = null, window_ends_at = null, window_used = null, window_held = null
        where parts.bucket = p_bucket and parts.user_id = p_users[v_ordinal] and parts.kind = p_kinds[v_ordinal]
            and parts.name = p_names[v_ordinal] and parts.billing_period <> p_periods[v_ordinal]
            and parts.window_ends_at > v_now and parts.window_opened_at <= v_latest;
    end loop;
end
$$;
