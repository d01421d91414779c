-- Closes the open windows of a user's parts, in the rows of any periods, and returns the messages that were counted in
-- them; null if none is open. The keys count in no window any more. p_kind, p_name: the part as in usage_parts; null is
-- all. The caller has locked the usage row of the open period.
create or replace function headroom.close_part_windows(p_user_id uuid, p_kind text, p_name text) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_part record;
    v_messages bigint;
begin
    for v_part in
        select parts.billing_period, parts.kind, parts.name, parts.window_opened_at, parts.window_used
        from headroom.usage_parts as parts
        where parts.bucket = headroom.bucket_of(p_user_id) and parts.user_id = p_user_id
            and parts.kind = coalesce(p_kind, parts.kind) and parts.name = coalesce(p_name, parts.name)
            and parts.window_ends_at > headroom.now()
        order by parts.billing_period, parts.kind, parts.name
    loop
        perform headroom.move_part_window(p_user_id, v_part.kind, v_part.name, v_part.window_opened_at, null);
        update headroom.usage_parts
        set window_opened_at = null, window_ends_at = null, window_used = null, window_held = null
        where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id
            and billing_period = v_part.billing_period and kind = v_part.kind and name = v_part.name;
        v_messages := coalesce(v_messages, 0) + v_part.window_used;
    end loop;
    return v_messages;
end
$$;
