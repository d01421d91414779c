-- Locks the row of a user's key and returns it; all columns are null if there is none. Raises HR006 if the row has a
-- value that the constraints forbid.
create or replace function headroom.lock_key(p_user_id uuid, p_key text) returns headroom.message_keys
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_key headroom.message_keys;
begin
    select * into v_key from headroom.message_keys
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and key = p_key
    for update;
    if v_key.messages not between 1 and 1000000 or least(
        v_key.used, v_key.held, v_key."limit", v_key.committed_used, v_key.committed_held, v_key.committed_limit
    ) < 0 then
        perform headroom.raise_invalid_row('headroom.message_keys', to_jsonb(v_key));
    end if;
    return v_key;
end
$$;
