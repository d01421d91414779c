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
#variable_conflict use_column
declare
    v_unfit integer[];
    v_user integer;
    v_plans text[] := p_plans;
    v_parts bytea[];
    -- These are of the parts to count: their ordinals, and columns of their rows.
    v_ordinals bigint[];
    v_generations bigint[];
    v_opened_at timestamptz[];
    v_ends_at timestamptz[];
begin
    -- LIMIT keeps the query from becoming a join, which would read all rows if the table was small when it was last
    -- analyzed.
    select
        array_agg(present.user_ordinal) filter (where not judged.fits),
        array_agg(case when judged.fits then record_send(row(
            present.ordinal, present.used + present.messages, present.held, present.opened_at, present.ends_at,
            present.window_used + present.messages, present.window_held
        )::headroom.counted_part) end),
        array_agg(present.ordinal), array_agg(present.generation), array_agg(present.opened_at),
        array_agg(present.ends_at)
    into v_unfit, v_parts, v_ordinals, v_generations, v_opened_at, v_ends_at
    from (
        select
            part.ordinal, part.user_ordinal, part.messages, part."limit", part.window_limit, counted.generation,
            counted.used, counted.held, counted.holds_end_at,
            case when part.window_limit is not null then counted.window_used end as window_used,
            case when part.window_limit is not null then counted.window_held end as window_held,
            case when part.window_limit is not null then counted.window_opened_at end as opened_at,
            -- The order matters: an instant out of range must not be computed with.
            case
                when part.window_limit is not null
                    and counted.window_opened_at between '2000-01-01T00:00:00Z' and p_at + interval '1 hour'
                    then least(
                        counted.window_ends_at, counted.window_opened_at + make_interval(secs => part.window_seconds)
                    )
            end as ends_at
        from unnest(
            p_part_users, p_part_kinds, p_part_names, p_part_messages, p_part_limits, p_part_window_limits,
            p_part_window_seconds
        ) with ordinality
            as part (user_ordinal, kind, name, messages, "limit", window_limit, window_seconds, ordinal)
        left join lateral (
            select one.*
            from headroom.usage_parts as one
            where one.bucket = p_bucket and one.user_id = p_users[part.user_ordinal]
                and one.billing_period = p_periods[p_period_ordinals[part.user_ordinal]]
                and one.kind = part.kind and one.name = part.name
            limit 1
        ) as counted on true
        where p_enforced[part.user_ordinal] is not null
    ) as present
    cross join lateral (
        select coalesce(
            least(present.used, present.held, present.window_used, present.window_held) >= 0
            and (present.holds_end_at is null or present.holds_end_at > p_at)
            -- headroom.fits, as the number of messages that fit
            and present.messages <= coalesce(
                case when p_enforced[present.user_ordinal] then present."limit" end, 2147483647
            )::bigint - present.used - present.held
            and (
                present.window_limit is null
                or present.ends_at > p_at
                and present.messages <= case
                    when p_enforced[present.user_ordinal] then present.window_limit else 2147483647
                end::bigint - present.window_used - present.window_held
            ),
            false
        ) as fits
    ) as judged;
    if v_unfit is not null then
        foreach v_user in array v_unfit loop
            v_plans[v_user] := '';
        end loop;
        raise exception 'not all parts fit' using errcode = 'HR014', detail = v_plans::text;
    elsif v_ordinals is null then
        return null;
    end if;
    -- It is no UPDATE with a join, which may read all rows. A row is inserted only if it was deleted by hand meanwhile.
    insert into headroom.usage_parts as part (
        bucket, user_id, billing_period, kind, name, generation, updated_at, used, "limit", window_opened_at,
        window_ends_at, window_used, window_held, window_limit
    )
    select
        p_bucket, p_users[p_part_users[row.ordinal]], p_periods[p_period_ordinals[p_part_users[row.ordinal]]],
        p_part_kinds[row.ordinal], p_part_names[row.ordinal], row.generation, p_at, p_part_messages[row.ordinal],
        p_part_limits[row.ordinal], row.opened_at, row.ends_at,
        case when p_part_window_limits[row.ordinal] is not null then p_part_messages[row.ordinal] end,
        case when p_part_window_limits[row.ordinal] is not null then 0 end, p_part_window_limits[row.ordinal]
    from unnest(v_ordinals, v_generations, v_opened_at, v_ends_at) as row (ordinal, generation, opened_at, ends_at)
    on conflict (bucket, user_id, billing_period, kind, name) do update
    set used = part.used + excluded.used, updated_at = excluded.updated_at, "limit" = excluded."limit",
        window_ends_at = coalesce(excluded.window_ends_at, part.window_ends_at),
        window_used = part.window_used + coalesce(excluded.window_used, 0), window_limit = excluded.window_limit;
    return v_parts;
end
$$;
