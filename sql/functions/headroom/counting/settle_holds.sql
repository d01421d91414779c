-- Settles the holds of a batch that was counted (headroom.count_keyed_batch): writes the keys that are committed or
-- released. p_settled: their users, as ordinals. p_held_messages: what each key held. p_used_of to p_window_limit_of:
-- for each user, what the answer to a COMMIT shows. The other parameters are those of the batch, with the users'
-- periods. The caller has locked the usage rows. Raises serialization_failure if another session has written one of the
-- keys.
create or replace function headroom.settle_holds(
    p_bucket smallint, p_users uuid[], p_periods text[], p_period_ordinals integer[], p_keys text[], p_verbs text[],
    p_key_messages integer[], p_settled integer[], p_held_messages integer[], p_generation_of bigint[],
    p_used_of integer[], p_held_of integer[], p_limit_of integer[], p_window_used_of integer[],
    p_window_held_of integer[], p_window_limit_of integer[], p_at timestamptz
) returns void
    language plpgsql
as $$
declare
    v_count integer;
begin
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
