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
    v_counted headroom.counted_parts;
    v_plans text[] := p_plans;
    v_user integer;
begin
    with counted as (
        update headroom.usage_parts as counted
        set used = counted.used + part.messages, updated_at = p_at, "limit" = part."limit",
            window_ends_at = case
                when part.window_limit is null then counted.window_ends_at
                else least(
                    counted.window_ends_at, counted.window_opened_at + make_interval(secs => part.window_seconds)
                )
            end,
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
                    then least(
                        counted.window_ends_at, counted.window_opened_at + make_interval(secs => part.window_seconds)
                    ) > p_at
                    and part.messages <= case
                        when p_enforced[part.user_ordinal] then part.window_limit else 2147483647
                    end::bigint - counted.window_used - counted.window_held
                else false
            end
        returning
            part.ordinal, part.window_limit, counted.used, counted.held, counted.window_opened_at,
            counted.window_ends_at, counted.window_used, counted.window_held
    )
    select
        array_agg(counted.ordinal), array_agg(counted.used), array_agg(counted.held),
        array_agg(case when counted.window_limit is not null then counted.window_opened_at end),
        array_agg(case when counted.window_limit is not null then counted.window_ends_at end),
        array_agg(case when counted.window_limit is not null then counted.window_used end),
        array_agg(case when counted.window_limit is not null then counted.window_held end)
    into v_counted
    from counted;
    if cardinality(v_counted.ordinals) is distinct from cardinality(p_part_users) then
        for v_user in
            select part.user_ordinal
            from unnest(p_part_users) with ordinality as part (user_ordinal, ordinal)
            where p_enforced[part.user_ordinal] is not null and (part.ordinal = any(v_counted.ordinals)) is not true
        loop
            v_plans[v_user] := '';
        end loop;
        if found then
            raise exception 'not all parts fit' using errcode = 'HR014', detail = v_plans::text;
        end if;
    end if;
    return case when v_counted.ordinals is not null then array[record_send(v_counted)] end;
end
$$;
