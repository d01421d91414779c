-- Releases counted or held messages of a key in a period other than the open one, and returns how many. Locks the usage
-- row.
create or replace function headroom.release_in_other_period(
    p_user_id uuid, p_billing_period text, p_generation bigint, p_messages integer, p_is_held boolean, p_at timestamptz
) returns integer
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform headroom.lock_usage(p_user_id, p_billing_period);
    if p_is_held then
        update public.message_usage set held = greatest(held - p_messages, 0)
        where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and billing_period = p_billing_period;
        return p_messages;
    end if;
    -- Only if the generation is the one in which the messages were counted: each reset changes it.
    update public.message_usage
    set message_count = greatest(message_count - p_messages, 0),
        released = least(released::bigint + p_messages, 2147483647), updated_at = p_at
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and billing_period = p_billing_period
        and generation = p_generation;
    return case when found then p_messages else 0 end;
end
$$;
