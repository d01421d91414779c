-- Writes the keys of a batch that was counted (headroom.count_keyed_batch, whose parameters these are, with the users'
-- periods): inserts those of CONSUME and RESERVE, and settles the holds of those that are committed or released.
-- p_settled: the users of the latter, as ordinals. p_held_messages, p_hold_ends: what each key held, and when a new
-- hold ends. p_generation_of to p_window_limit_of: for each counted user with a key, but not that of a RELEASE, what
-- the answer shows; p_held_of is null for 0. p_key_parts: null, or Engine's KeyParts of each key. The caller has locked
-- the usage rows. Raises unique_violation if a key exists, and serialization_failure if another session has written one
-- that is to be settled.
create or replace function headroom.write_keys(
    p_bucket smallint, p_users uuid[], p_periods text[], p_period_ordinals integer[], p_keys text[], p_verbs text[],
    p_key_messages integer[], p_settled integer[], p_held_messages integer[], p_hold_ends timestamptz[],
    p_generation_of bigint[], p_used_of integer[], p_held_of integer[], p_limit_of integer[],
    p_window_opened_at_of timestamptz[], p_window_used_of integer[], p_window_held_of integer[],
    p_window_limit_of integer[], p_key_parts jsonb[], p_at timestamptz
) returns void
    language plpgsql
as $$
declare
    v_count integer;
begin
    insert into headroom.message_keys (
        bucket, user_id, created_at, generation, messages, used, held, "limit", expires_at, verb, status,
        billing_period, key, window_opened_at, window_used, window_held, window_limit, parts
    )
    select
        p_bucket, p_users[ordinal], p_at, p_generation_of[ordinal], p_key_messages[ordinal], p_used_of[ordinal],
        coalesce(p_held_of[ordinal], 0), p_limit_of[ordinal], p_hold_ends[ordinal],
        left(p_verbs[ordinal], 1)::"char", case when p_verbs[ordinal] = 'reserve' then 'h' else 'c' end,
        p_periods[p_period_ordinals[ordinal]], p_keys[ordinal], p_window_opened_at_of[ordinal],
        p_window_used_of[ordinal], p_window_held_of[ordinal], p_window_limit_of[ordinal], p_key_parts[ordinal]
    from generate_subscripts(p_used_of, 1) as ordinal
    where p_used_of[ordinal] is not null and p_verbs[ordinal] <> 'commit';
    if p_settled = '{}' then
        return;
    end if;
    -- It is no UPDATE with a join, which may read all keys if the table was small when it was last analyzed. Of a
    -- RELEASE, the new numbers are null. The row is inserted only if the key was deleted meanwhile.
    insert into headroom.message_keys as keys (
        bucket, user_id, key, created_at, generation, messages, used, held, expires_at, verb, status,
        billing_period, committed_messages, committed_used, committed_held, committed_limit,
        committed_window_used, committed_window_held, committed_window_limit
    )
    select
        p_bucket, p_users[ordinal], p_keys[ordinal], p_at, coalesce(p_generation_of[ordinal], 0),
        p_held_messages[ordinal], coalesce(p_used_of[ordinal], 0), coalesce(p_held_of[ordinal], 0), p_at,
        'r'::"char", left(p_verbs[ordinal], 1)::"char", p_periods[p_period_ordinals[ordinal]],
        case
            when p_verbs[ordinal] = 'commit'
                then coalesce(p_key_messages[ordinal], p_held_messages[ordinal])
        end,
        p_used_of[ordinal],
        case when p_verbs[ordinal] = 'commit' then coalesce(p_held_of[ordinal], 0) end,
        p_limit_of[ordinal], p_window_used_of[ordinal], p_window_held_of[ordinal],
        p_window_limit_of[ordinal]
    from unnest(p_settled) as ordinal
    on conflict (bucket, user_id, key) do update
    set status = excluded.status,
        generation = case when excluded.status = 'c' then excluded.generation else keys.generation end,
        committed_messages = excluded.committed_messages, committed_used = excluded.committed_used,
        committed_held = excluded.committed_held, committed_limit = excluded.committed_limit,
        committed_window_used = excluded.committed_window_used,
        committed_window_held = excluded.committed_window_held,
        committed_window_limit = excluded.committed_window_limit
    where keys.status = 'h' and keys.expires_at > excluded.created_at;
    get diagnostics v_count = row_count;
    if v_count <> cardinality(p_settled) then
        raise exception 'another session has written one of the keys'
            using errcode = 'serialization_failure', hint = 'Try again.';
    end if;
end
$$;
