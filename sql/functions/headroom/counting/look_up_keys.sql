-- Looks up keys of a batch (headroom.count_keyed_batch, whose parameters these are, with the users' periods), without a
-- lock. Returns the users who can be counted, and for each user of the batch the messages to count, to add to the held
-- ones and to check against the limit, the messages and the window of the hold that a COMMIT or a RELEASE settles, and
-- when a new hold ends, which Citus could not compute in the UPDATE. p_reads_all: also the keys of CONSUME and RESERVE,
-- which are nearly always new.
create or replace function headroom.look_up_keys(
    p_bucket smallint, p_users uuid[], p_periods text[], p_period_ordinals integer[], p_messages bigint[],
    p_keys text[], p_verbs text[], p_key_messages integer[], p_hold_seconds integer[], p_reads_all boolean,
    p_at timestamptz,
    out users uuid[], out messages bigint[], out holds bigint[], out new bigint[], out key_messages integer[],
    out key_windows timestamptz[], out hold_ends timestamptz[]
)
    language plpgsql stable
as $$
#variable_conflict use_column
begin
    -- LIMIT keeps the query from becoming a join, which would read all keys if the table was small when it was last
    -- analyzed.
    select
        array_agg(request.user_id) filter (
            where case
                when request.verb in ('commit', 'release')
                    then
                    used.is_held and used.billing_period = p_periods[request.period]
                    and coalesce(request.key_messages, 0) <= used.messages
                else used.messages is null
            end
        ),
        array_agg(
            request.messages + case request.verb
                when 'commit' then coalesce(request.key_messages, used.messages, 0) else 0
            end
        ),
        array_agg(case request.verb
            when 'reserve' then request.key_messages when 'consume' then 0 else -coalesce(used.messages, 0)
        end),
        array_agg(
            request.messages + case request.verb when 'reserve' then request.key_messages else 0 end
        ),
        array_agg(coalesce(used.messages, request.key_messages)),
        array_agg(used.window_opened_at),
        array_agg(case when request.hold_seconds > 0 then p_at + make_interval(secs => request.hold_seconds) end)
    into users, messages, holds, new, key_messages, key_windows, hold_ends
    from unnest(p_users, p_period_ordinals, p_messages, p_keys, p_verbs, p_key_messages, p_hold_seconds)
        as request (user_id, period, messages, key, verb, key_messages, hold_seconds)
    left join lateral (
        select
            keys.messages, keys.billing_period, keys.window_opened_at,
            -- The slow path settles one with parts.
            keys.verb = 'r' and keys.status = 'h' and keys.expires_at > p_at and keys.parts is null as is_held
        from headroom.message_keys as keys
        where (p_reads_all or request.verb in ('commit', 'release'))
            and keys.bucket = p_bucket and keys.user_id = request.user_id and keys.key = request.key
        limit 1
    ) as used on true;
end
$$;
