-- Subtracts what headroom.transfer_part_windows has added, by the rules of headroom.revert_transferred_window.
-- p_raised: the result of that function. The caller has locked the receiver's usage rows.
create or replace function headroom.revert_transferred_part_windows(p_receiver uuid, p_raised jsonb) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    -- Citus refuses the function in CASE.
    v_now constant timestamptz := headroom.now();
    v_part record;
begin
    for v_part in
        select raised.* from jsonb_to_recordset(coalesce(p_raised, '[]')) as raised (
            kind text, name text, opened_at timestamptz, messages integer, own_end timestamptz
        )
    loop
        update headroom.usage_parts
        set window_used = greatest(window_used - v_part.messages, 0),
            window_ends_at = case
                when window_used <= v_part.messages and window_held = 0 then v_now
                when v_part.own_end > v_now then least(window_ends_at, v_part.own_end)
                else window_ends_at
            end
        where bucket = headroom.bucket_of(p_receiver) and user_id = p_receiver and kind = v_part.kind
            and name = v_part.name and window_opened_at = v_part.opened_at and window_ends_at > v_now;
    end loop;
end
$$;
