-- Writes the keys of a batch that was counted (headroom.count_keyed_batch): inserts those of CONSUME and RESERVE, and
-- updates those of COMMIT and RELEASE. The caller has locked the usage rows. Raises unique_violation or
-- serialization_failure if another session has written one of the keys meanwhile; the batch is then sent again.
-- p_has_holds: whether there may be others than those of CONSUME.
create or replace function headroom.write_counted_keys(
    p_bucket smallint, p_keys headroom.counted_key[], p_has_holds boolean, p_at timestamptz
) returns void
    language plpgsql
as $$
declare
    v_key headroom.counted_key;
begin
    insert into headroom.message_keys (
        bucket, user_id, created_at, generation, messages, used, held, "limit", expires_at, verb, status,
        billing_period, key, window_opened_at, window_used, window_held, window_limit
    )
    select
        p_bucket, counted.user_id, p_at, counted.generation, counted.messages, counted.used, counted.held,
        counted."limit", case counted.verb when 'reserve' then p_at + make_interval(secs => counted.hold_seconds) end,
        left(counted.verb, 1)::"char", case counted.verb when 'reserve' then 'h' else 'c' end, counted.billing_period,
        counted.key, counted.window_opened_at, counted.window_used, counted.window_held, counted.window_limit
    from unnest(p_keys) as counted
    where counted.verb in ('consume', 'reserve');
    if not p_has_holds then
        return;
    end if;
    -- Keys are updated one after the other, because an UPDATE with a join may read all keys if the table was small when
    -- it was last analyzed.
    for v_key in select counted.* from unnest(p_keys) as counted where counted.verb in ('commit', 'release') loop
        if v_key.verb = 'commit' then
            update headroom.message_keys as keys
            set status = 'c', committed_messages = v_key.messages, committed_used = v_key.used,
                committed_held = v_key.held, committed_limit = v_key."limit", generation = v_key.generation,
                committed_window_used = v_key.window_used, committed_window_held = v_key.window_held,
                committed_window_limit = v_key.window_limit
            where keys.bucket = p_bucket and keys.user_id = v_key.user_id and keys.key = v_key.key
                and keys.status = 'h' and keys.expires_at > p_at;
        else
            update headroom.message_keys as keys set status = 'r'
            where keys.bucket = p_bucket and keys.user_id = v_key.user_id and keys.key = v_key.key
                and keys.status = 'h' and keys.expires_at > p_at;
        end if;
        if not found then
            raise exception 'another session has written a key of user %', v_key.user_id
                using errcode = 'serialization_failure', hint = 'Try again.';
        end if;
    end loop;
end
$$;
