-- Counts messages of one user as CONSUME does, for callers in SQL. Returns the user's usage snapshot; its "messages" is
-- 0 if they were refused. Locks the subscriber, then the usage row.
create or replace function headroom.count_messages(p_user_id uuid, p_messages integer, p_unknown_users_policy text)
    returns headroom.usage_snapshot
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    -- The attempt is repeated if another session counts the user's first message at the same moment. Each attempt waits
    -- for that session, so a few are enough.
    for v_attempt in 1 .. 9 loop
        begin
            return headroom.try_to_count_messages(p_user_id, p_messages, p_unknown_users_policy);
        exception
            when unique_violation or serialization_failure then
                null;
        end;
    end loop;
    return headroom.try_to_count_messages(p_user_id, p_messages, p_unknown_users_policy);
end
$$;
