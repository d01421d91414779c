-- Counts the messages of a batch under the limits for parts of them, after headroom.count_keyed_batch has counted the
-- batch, whose parameters these are, with the users' periods. Returns parts of headroom.counted_batch. The caller has
-- locked the usage rows, and so these rows.
--
-- p_part_users: the ordinal of each limit's user. p_part_kinds, p_part_names: the row of headroom.usage_parts.
-- p_part_messages: the messages to count, once for each row. p_part_limits, p_part_window_limits,
-- p_part_window_seconds: the limit, null if there is none. p_enforced: whether each user's plan is enforced; null if
-- the user was not counted.
--
-- Raises HR014 if a part of a user does not fit, or has no row yet, no open window, one that is longer than those of
-- the limit now, or a hold that has ended. Its detail is p_plans, which is empty for these users. It opens no window:
-- one may be open in the row of another period, from which the slow path moves it. Nor does it shorten one: in an
-- UPDATE Citus adds no interval to an instant of the row. It plans this UPDATE anew for each batch.
create or replace function headroom.count_parts(
    p_bucket smallint, p_users uuid[], p_periods text[], p_period_ordinals integer[], p_part_users integer[],
    p_part_kinds text[], p_part_names text[], p_part_messages bigint[], p_part_limits integer[],
    p_part_window_limits integer[], p_part_window_seconds integer[], p_enforced boolean[],
    p_plans text[], p_at timestamptz
) returns bigint[]
    language plpgsql
as $$
declare
    v_latest constant timestamptz := p_at + interval '1 hour';
    -- A window lasts at most 31 days.
    v_end constant timestamptz := p_at + interval '32 days';
    v_counted bigint[] := '{}';
    v_is_counted boolean[] := '{}';
    v_plans text[] := p_plans;
    v_ordinal bigint;
    v_used integer;
    v_held integer;
    v_window_opened_at timestamptz;
    v_window_ends_at timestamptz;
    v_window_used integer;
    v_window_held integer;
    v_user integer;
begin
    for v_ordinal, v_used, v_held, v_window_opened_at, v_window_ends_at, v_window_used, v_window_held in
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
            counted.window_used, counted.window_held
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
    end loop;
    if cardinality(v_is_counted) < cardinality(p_part_users) or array_position(v_is_counted, null) is not null then
        for v_user in
            select part.user_ordinal
            from unnest(p_part_users) with ordinality as part (user_ordinal, ordinal)
            where p_enforced[part.user_ordinal] is not null and v_is_counted[part.ordinal] is null
        loop
            v_plans[v_user] := '';
        end loop;
        if found then
            raise exception 'not all parts fit' using errcode = 'HR014', detail = v_plans::text;
        end if;
    end if;
    return nullif(v_counted, '{}');
end
$$;
