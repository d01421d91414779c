-- Locks the user's row in headroom.subscribers and creates it if there is none. Returns whether it was created. Call it
-- before functions that lock other rows of the user. Raises HR011 if the row is not kept. It waits for a step of
-- headroom.divide_users, and the next step waits for this transaction: it would not see a row that is created here.
create or replace function headroom.lock_subscriber(p_user_id uuid) returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_was_created boolean := false;
begin
    perform headroom.await_division();
    for v_attempt in 1 .. 10 loop
        perform from headroom.subscribers
        where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id for update;
        if found then
            return v_was_created;
        end if;
        -- There is no row, or another session deleted it while this one waited.
        insert into headroom.subscribers (bucket, user_id) values (headroom.bucket_of(p_user_id), p_user_id)
        on conflict (bucket, user_id) do nothing;
        v_was_created := found;
    end loop;
    perform headroom.raise_discarded_row('headroom.subscribers', p_user_id);
end
$$;
