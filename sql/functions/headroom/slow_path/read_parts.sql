-- Reads what is counted and held of limits for parts of users' messages: a row for each request, in their order. The
-- other arrays have one element for each: the user, the billing period, and kind and name of headroom.usage_parts.
-- Raises HR006 if a row has a value that the trigger values_are_in_range refuses. Locks nothing: a caller that writes
-- what it has read has locked the user (headroom.lock_and_read_users).
--
-- buckets_revision: the revision of the map of buckets; if it is another than that by which p_bucket was chosen, users
-- may be in other buckets. generation: null if the period has no row yet. window_opened_at: the newest open window,
-- which may be in the row of another period; null, with 0 messages, if none is open. It ends at window_ends_at, or
-- earlier if the limit has shorter windows now. holds_end_at: when the first hold ends; null without holds. Holds that
-- have ended are counted no more.
create or replace function headroom.read_parts(
    p_bucket smallint, p_users uuid[], p_periods text[], p_kinds text[], p_names text[]
) returns table (
    ordinal integer, buckets_revision integer, generation bigint, used integer, held integer,
    window_opened_at timestamptz, window_ends_at timestamptz, window_used integer, window_held integer,
    holds_end_at timestamptz
)
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_now constant timestamptz := headroom.now();
    -- A window lasts at most 31 days: headroom.open_window explains the months.
    v_earliest_period constant text := to_char(v_now at time zone 'UTC' - interval '3 months', 'YYYY-MM');
    v_buckets_revision integer;
begin
    select revised.buckets_revision into v_buckets_revision from headroom.present_revisions as revised;
    return query
    select
        request.ordinal::integer, v_buckets_revision, present.generation, coalesce(present.used, 0),
        coalesce(holds.held, present.held, 0),
        opened.window_opened_at, opened.window_ends_at, coalesce(opened.window_used, 0),
        coalesce(holds.window_held, opened.window_held, 0),
        case
            when holds.held is null then least(present.holds_end_at, opened.holds_end_at) else holds.ends_at
        end
    from unnest(p_users, p_periods, p_kinds, p_names) with ordinality
        as request (user_id, billing_period, kind, name, ordinal)
    -- LIMIT keeps these from becoming joins, which would read all rows if the table was small when it was last
    -- analyzed.
    left join lateral (
        select parts.generation, parts.used, parts.held, parts.holds_end_at
        from headroom.usage_parts as parts
        where parts.bucket = p_bucket and parts.user_id = request.user_id
            and parts.billing_period = request.billing_period and parts.kind = request.kind
            and parts.name = request.name
            and case
                when least(
                        parts.generation, parts.used, parts.held, parts."limit", parts.window_used, parts.window_held,
                        parts.window_limit
                    ) >= 0
                    and headroom.is_instant(parts.window_opened_at) and headroom.is_instant(parts.window_ends_at)
                    and headroom.is_instant(parts.holds_end_at) and headroom.is_instant(parts.updated_at)
                    then true
                else headroom.raise_invalid_row('headroom.usage_parts', to_jsonb(parts)) is null
            end
        limit 1
    ) as present on true
    left join lateral (
        select
            parts.window_opened_at, parts.window_ends_at, parts.window_used, parts.window_held, parts.holds_end_at
        from headroom.usage_parts as parts
        where parts.bucket = p_bucket and parts.user_id = request.user_id and parts.kind = request.kind
            and parts.name = request.name and parts.billing_period >= v_earliest_period
            and parts.window_opened_at between '2000-01-01T00:00:00Z' and v_now + interval '1 hour'
            and parts.window_ends_at > v_now
        order by parts.window_opened_at desc
        limit 1
    ) as opened on true
    -- With an offset, the function is called only if a hold has ended.
    left join lateral (
        select kept.held, kept.window_held, kept.ends_at
        from headroom.held_parts(
            request.user_id, request.billing_period, request.kind, request.name, opened.window_opened_at, v_now
        ) as kept
        where least(present.holds_end_at, opened.holds_end_at) <= v_now
        offset 0
    ) as holds on true
    order by request.ordinal;
end
$$;
