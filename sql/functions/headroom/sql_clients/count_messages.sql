-- Counts messages of one user as CONSUME does, for callers in SQL. Returns the user's usage snapshot and the usage of
-- the parts that the caller names; the snapshot's "messages" is 0 if the messages were refused. Locks the subscriber,
-- then the usage row.
create or replace function headroom.count_messages(
    p_user_id uuid, p_messages integer, p_model text, p_member uuid, p_unknown_users_policy text,
    out snapshot headroom.usage_snapshot, out parts headroom.part_usage[]
)
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_counted record;
begin
    -- The attempt is repeated if another session counts the user's first message at the same moment. Each attempt waits
    -- for that session, so a few are enough.
    for v_attempt in 1 .. 10 loop
        begin
            select counted.* into v_counted from headroom.try_to_count_messages(
                p_user_id, p_messages, p_model, p_member, p_unknown_users_policy
            ) as counted;
            snapshot := v_counted.snapshot;
            parts := v_counted.parts;
            return;
        exception
            when unique_violation or serialization_failure then
                if v_attempt = 10 then
                    raise;
                end if;
        end;
    end loop;
end
$$;
