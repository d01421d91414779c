-- Gives back what a key has counted or holds in another row than the one that is open. Returns how many messages.
create or replace function headroom.give_back_elsewhere(
    p_user_id uuid, p_key headroom.message_keys, p_at timestamptz
) returns integer
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform headroom.check_usage(usage) from public.message_usage as usage
    where usage.user_id = p_user_id and usage.billing_period = p_key.billing_period;
    if p_key.status = 'h' then
        update public.message_usage as usage set held = greatest(usage.held - p_key.messages, 0)
        where usage.user_id = p_user_id and usage.billing_period = p_key.billing_period;
        return p_key.messages;
    end if;
    -- Only off the count that it was in: the generation changes with every reset.
    update public.message_usage as usage
    set message_count = greatest(usage.message_count - p_key.messages, 0),
        released = least(usage.released::bigint + p_key.messages, 2147483647), updated_at = p_at
    where usage.user_id = p_user_id and usage.billing_period = p_key.billing_period
        and usage.generation = p_key.generation;
    return case when found then p_key.messages else 0 end;
end
$$;
revoke all on function headroom.give_back_elsewhere(uuid, headroom.message_keys, timestamptz) from public;
grant execute on function headroom.give_back_elsewhere(uuid, headroom.message_keys, timestamptz) to headroom_service;
