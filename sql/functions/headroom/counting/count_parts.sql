-- Counts the messages of a batch under the limits for parts of them, after headroom.count_keyed_batch has counted the
-- batch, whose parameters these are, with the users' periods. Returns parts of headroom.counted_batch. The caller has
-- locked the usage rows, and so these rows.
--
-- p_part_users: the ordinal of each limit's user. p_part_kinds, p_part_names: the row of headroom.usage_parts.
-- p_part_messages: the messages to count, once for each row. p_part_limits, p_part_window_limits,
-- p_part_window_seconds: the limit, null if there is none. p_enforced: whether each user's plan is enforced; null if
-- the user was not counted.
--
-- Raises HR014 if a part of a user does not fit, or has no row yet, no open window, or a hold that has ended. Its
-- detail is p_plans, which is empty for these users. It opens no window: one may be open in the row of another period,
-- from which the slow path moves it.
create or replace function headroom.count_parts(
    p_bucket smallint, p_users uuid[], p_periods text[], p_period_ordinals integer[], p_part_users integer[],
    p_part_kinds text[], p_part_names text[], p_part_messages bigint[], p_part_limits integer[],
    p_part_window_limits integer[], p_part_window_seconds integer[], p_enforced boolean[],
    p_plans text[], p_at timestamptz
) returns bytea[]
    language plpgsql
as $$
declare
    v_latest constant timestamptz := p_at + interval '1 hour';
    v_plans text[] := p_plans;
    v_are_unfit boolean := false;
    v_parts bytea[] := '{}';
    v_user integer;
    v_messages bigint;
    v_limit integer;
    v_window_limit integer;
    v_earliest timestamptz;
    v_part bytea;
begin
    -- One statement for each row takes a third of the time of one for all, which would have to insert the rows that are
    -- there and resolve the conflict. A join may read the whole table if it was small when it was last analyzed.
    for v_ordinal in 1 .. cardinality(p_part_users) loop
        v_user := p_part_users[v_ordinal];
        continue when p_enforced[v_user] is null;
        v_messages := p_part_messages[v_ordinal];
        v_window_limit := p_part_window_limits[v_ordinal];
        v_limit := case when p_enforced[v_user] then p_part_limits[v_ordinal] end;
        -- A window that opened until then has ended, because the limit has shorter ones now.
        v_earliest := p_at - make_interval(secs => p_part_window_seconds[v_ordinal]);
        update headroom.usage_parts as part
        set used = part.used + v_messages, updated_at = p_at, "limit" = p_part_limits[v_ordinal],
            window_used = case when v_window_limit is null then part.window_used else part.window_used + v_messages end,
            window_limit = v_window_limit
        where part.bucket = p_bucket and part.user_id = p_users[v_user]
            and part.billing_period = p_periods[p_period_ordinals[v_user]]
            and part.kind = p_part_kinds[v_ordinal] and part.name = p_part_names[v_ordinal]
            and least(part.used, part.held, part.window_used, part.window_held) >= 0
            and (part.holds_end_at is null or part.holds_end_at > p_at)
            -- headroom.fits, as the number of messages that fit
            and v_messages <= coalesce(v_limit, 2147483647)::bigint - part.used - part.held
            and (
                v_window_limit is null
                or part.window_ends_at > p_at and part.window_opened_at > v_earliest
                and part.window_opened_at <= v_latest
                and v_messages <= case when p_enforced[v_user] then v_window_limit else 2147483647 end::bigint
                    - part.window_used - part.window_held
            )
        returning record_send(row(
            v_ordinal, part.used, part.held,
            case when v_window_limit is not null then part.window_opened_at end,
            case
                when v_window_limit is not null
                    then least(part.window_ends_at, part.window_opened_at + (p_at - v_earliest))
            end,
            case when v_window_limit is not null then part.window_used end,
            case when v_window_limit is not null then part.window_held end
        )::headroom.counted_part) into v_part;
        if found then
            v_parts := v_parts || v_part;
        else
            v_plans[v_user] := '';
            v_are_unfit := true;
        end if;
    end loop;
    if v_are_unfit then
        raise exception 'not all parts fit' using errcode = 'HR014', detail = v_plans::text;
    end if;
    return v_parts;
end
$$;
