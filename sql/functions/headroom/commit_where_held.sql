-- Counts a hold in the period in which it was made, which has ended since. Returns its key as it is then; null where an
-- operator has deleted the period's row, and the hold with it.
create or replace function headroom.commit_where_held(
    p_user_id uuid, p_key headroom.message_keys, p_at timestamptz
) returns headroom.message_keys
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_held bigint;
    v_key headroom.message_keys;
begin
    perform headroom.check_usage(usage) from public.message_usage as usage
    where usage.user_id = p_user_id and usage.billing_period = p_key.billing_period
    for update;
    if not found then
        return null;
    end if;
    -- Looked up with the row locked; the number in the row may have holds in it that have ended by themselves.
    select holds.held - p_key.messages into v_held
    from headroom.holds_of(p_user_id, p_key.billing_period, p_at) as holds;
    with counted as (
        update public.message_usage as usage
        set message_count = least(usage.message_count::bigint + p_key.messages, 2147483647),
            held = least(v_held, 2147483647), updated_at = p_at
        where usage.user_id = p_user_id and usage.billing_period = p_key.billing_period
        returning usage.message_count, usage.held, usage."limit", usage.generation
    )
    update headroom.message_keys as keys
    set status = 'c', committed_used = counted.message_count, committed_held = counted.held,
        committed_limit = counted."limit", generation = counted.generation
    from counted
    where keys.user_id = p_user_id and keys.key = p_key.key
    returning keys.* into strict v_key;
    return v_key;
end
$$;
revoke all on function headroom.commit_where_held(uuid, headroom.message_keys, timestamptz) from public;
grant execute on function headroom.commit_where_held(uuid, headroom.message_keys, timestamptz) to headroom_service;
