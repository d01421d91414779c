-- Gives the keys of a part's window another one: that which opened at p_to, or none. The messages and holds of these
-- keys count in it from then on. p_name: usage_parts.name. The caller has locked the user's usage row.
create or replace function headroom.move_part_window(
    p_user_id uuid, p_kind text, p_name text, p_from timestamptz, p_to timestamptz
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_from constant text := (extract(epoch from p_from) * 1000000)::bigint;
    v_to constant jsonb := (extract(epoch from p_to) * 1000000)::bigint;
begin
    update headroom.message_keys
    set parts = case
        when v_to is null then parts #- array[p_kind, 'window'] else jsonb_set(parts, array[p_kind, 'window'], v_to)
    end
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id
        and parts #>> array[p_kind, 'counter'] = p_name and parts #>> array[p_kind, 'window'] = v_from;
end
$$;
