-- Locks the user's row in headroom.subscribers and creates it if there is none. Returns whether it was created. Call it
-- before functions that lock other rows of the user.
create or replace function headroom.lock_subscriber(p_user_id uuid) returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_was_created boolean := false;
begin
    loop
        perform from headroom.subscribers
        where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id for update;
        exit when found;
        -- There is no row, or another session deleted it while this one waited.
        insert into headroom.subscribers (bucket, user_id) values (headroom.bucket_of(p_user_id), p_user_id)
        on conflict (bucket, user_id) do nothing;
        v_was_created := found;
    end loop;
    return v_was_created;
end
$$;
