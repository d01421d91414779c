-- Makes a user known and locks the subscriber's row, which comes before everything else of the user. Returns whether the
-- user was unknown.
create or replace function headroom.lock_subscriber(p_user_id uuid) returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_is_new boolean := false;
begin
    loop
        perform from headroom.subscribers
        where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id for update;
        exit when found;
        -- The user is unknown, or another session has forgotten the user while this one waited.
        insert into headroom.subscribers (bucket, user_id) values (headroom.bucket_of(p_user_id), p_user_id)
        on conflict (bucket, user_id) do nothing;
        v_is_new := found;
    end loop;
    return v_is_new;
end
$$;
