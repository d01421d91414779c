-- Counts messages as CONSUME does. End users may call it for themselves.
create or replace function public.increment_and_check_usage(p_user_id uuid, p_messages integer default 1)
    returns headroom.answer
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_snapshot headroom.usage_snapshot;
begin
    perform headroom.check_caller(p_user_id);
    if p_user_id is null then
        raise exception 'p_user_id is null: pass the user''s uuid' using errcode = 'null_value_not_allowed';
    elsif p_messages is null or p_messages not between 1 and 1000000 then
        raise exception 'p_messages must be 1 to 1000000' using errcode = 'invalid_parameter_value';
    end if;
    -- This is another statement, so that the answer sees what an operator has committed while this one waited for the
    -- row.
    v_snapshot := headroom.count_messages(p_user_id, p_messages, headroom.unknown_users_policy());
    return headroom.format_answer(p_user_id, v_snapshot, p_messages);
end
$$;
alter function public.increment_and_check_usage(uuid, integer) owner to headroom_owner;
