-- Counts the messages of a batch under the limits for parts of them, after headroom.count_keyed_batch has counted the
-- batch, whose parameters these are, with the users' periods. The caller has locked the usage rows, and so these rows.
--
-- counted_parts: parts of headroom.counted_batch. key_parts: p_key_parts with the numbers of the counters, for the
-- rows of keys.
--
-- p_part_users: the ordinal of each limit's user. p_part_kinds, p_part_names: the row of headroom.usage_parts.
-- p_part_messages: the messages to count, once for each row. p_part_limits, p_part_window_limits,
-- p_part_window_seconds: the limit, null if there is none. p_enforced: whether each user's plan is enforced; null if
-- the user was not counted.
--
-- Raises HR014 if a part of a user does not fit, or has no row yet, no open window, one that is longer than those of
-- the limit now, or a hold that has ended. Its detail is an array of these users. It opens no window:
-- one may be open in the row of another period, from which the slow path moves it. Nor does it shorten one: in an
-- UPDATE Citus adds no interval to an instant of the row. It plans this UPDATE anew for each batch.
create or replace function headroom.count_parts(
    p_bucket smallint, p_users uuid[], p_periods text[], p_period_ordinals integer[], p_part_users integer[],
    p_part_kinds text[], p_part_names text[], p_part_messages bigint[], p_part_limits integer[],
    p_part_window_limits integer[], p_part_window_seconds integer[], p_enforced boolean[],
    p_key_parts text[], p_at timestamptz,
    out counted_parts bigint[], out key_parts jsonb[]
)
    language plpgsql
as $$
declare
    v_latest constant timestamptz := p_at + interval '1 hour';
    -- A window lasts at most 31 days.
    v_end constant timestamptz := p_at + interval '32 days';
    v_counted bigint[] := '{}';
    v_is_counted boolean[] := '{}';
    v_unfit uuid[];
    v_ordinal bigint;
    v_used integer;
    v_held integer;
    v_window_opened_at timestamptz;
    v_window_ends_at timestamptz;
    v_window_used integer;
    v_window_held integer;
    v_user integer;
    v_generation bigint;
    v_key_parts jsonb;
begin
    key_parts := p_key_parts::jsonb[];
    for v_ordinal, v_used, v_held, v_window_opened_at, v_window_ends_at, v_window_used, v_window_held,
        v_generation in
        update headroom.usage_parts as counted
        set used = counted.used + part.messages, updated_at = p_at, "limit" = part."limit",
            window_used = case
                when part.window_limit is null then counted.window_used else counted.window_used + part.messages
            end,
            window_limit = part.window_limit
        from unnest(
            p_part_users, p_part_kinds, p_part_names, p_part_messages, p_part_limits, p_part_window_limits,
            p_part_window_seconds
        ) with ordinality
            as part (user_ordinal, kind, name, messages, "limit", window_limit, window_seconds, ordinal)
        where counted.bucket = p_bucket and counted.user_id = p_users[part.user_ordinal]
            and counted.billing_period = p_periods[p_period_ordinals[part.user_ordinal]]
            and counted.kind = part.kind and counted.name = part.name
            and p_enforced[part.user_ordinal] is not null
            and (counted.holds_end_at is null or counted.holds_end_at > p_at)
            and least(counted.used, counted.held, counted.window_used, counted.window_held) >= 0
            -- headroom.fits, as the number of messages that fit
            and part.messages <= coalesce(
                case when p_enforced[part.user_ordinal] then part."limit" end, 2147483647
            )::bigint - counted.used - counted.held
            -- The order matters: an instant out of range must not be computed with.
            and case
                when part.window_limit is null then true
                when counted.window_opened_at between '2000-01-01T00:00:00Z' and v_latest
                    and counted.window_ends_at > p_at and counted.window_ends_at < v_end
                    then counted.window_ends_at - counted.window_opened_at
                        <= make_interval(secs => part.window_seconds)
                    and part.messages <= case
                        when p_enforced[part.user_ordinal] then part.window_limit else 2147483647
                    end::bigint - counted.window_used - counted.window_held
                else false
            end
        returning
            part.ordinal, counted.used, counted.held,
            case when part.window_limit is not null then counted.window_opened_at end, counted.window_ends_at,
            counted.window_used, counted.window_held, counted.generation
    loop
        v_is_counted[v_ordinal] := true;
        if v_held = 0 and v_window_opened_at is null then
            v_counted := v_counted || ((v_ordinal << 32) | v_used);
        else
            v_counted := v_counted || array[
                (1::bigint << 62) | (v_ordinal << 32) | v_used, v_held,
                coalesce((extract(epoch from v_window_opened_at) * 1000000)::bigint, 0),
                coalesce((extract(epoch from v_window_ends_at) * 1000000)::bigint, 0), coalesce(v_window_used, 0),
                coalesce(v_window_held, 0)
            ];
        end if;
        v_user := p_part_users[v_ordinal];
        v_key_parts := key_parts[v_user];
        continue when v_key_parts is null;
        -- Engine's KeyPart. Without a window, its numbers are null.
        key_parts[v_user] := jsonb_set(
            v_key_parts, array[p_part_kinds[v_ordinal]], v_key_parts -> p_part_kinds[v_ordinal] || jsonb_build_object(
                'generation', v_generation, 'window', (extract(epoch from v_window_opened_at) * 1000000)::bigint,
                'first', jsonb_build_object(
                    'used', v_used, 'held', v_held, 'limit', p_part_limits[v_ordinal],
                    'window_used', case when v_window_opened_at is not null then coalesce(v_window_used, 0) end,
                    'window_held', case when v_window_opened_at is not null then coalesce(v_window_held, 0) end,
                    'window_limit', p_part_window_limits[v_ordinal]
                )
            )
        );
    end loop;
    if cardinality(v_is_counted) < cardinality(p_part_users) or array_position(v_is_counted, null) is not null then
        select array_agg(distinct p_users[part.user_ordinal]) into v_unfit
        from unnest(p_part_users) with ordinality as part (user_ordinal, ordinal)
        where p_enforced[part.user_ordinal] is not null and v_is_counted[part.ordinal] is null;
        if v_unfit is not null then
            raise exception 'not all parts fit' using errcode = 'HR014', detail = v_unfit::text;
        end if;
    end if;
    counted_parts := nullif(v_counted, '{}');
end
$$;
