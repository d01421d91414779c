-- Counts messages as CONSUME does, with the options model and member. End users may call it for themselves.
create or replace function public.increment_and_check_usage(
    p_user_id uuid, p_messages integer default 1, p_model text default null, p_member uuid default null
) returns headroom.answer
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_counted record;
begin
    perform headroom.check_caller(p_user_id, p_member);
    if p_user_id is null then
        raise exception 'p_user_id is null: pass the user''s uuid' using errcode = 'null_value_not_allowed';
    elsif p_messages is null or p_messages not between 1 and 1000000 then
        raise exception 'p_messages must be 1 to 1000000' using errcode = 'invalid_parameter_value';
    elsif p_model !~ '^[A-Za-z0-9._:/@-]{1,64}$' then
        raise exception 'p_model must be 1 to 64 letters, digits and . _ : / @ -'
            using errcode = 'invalid_parameter_value';
    end if;
    -- This is another statement, so that the answer sees what an operator has committed while this one waited for the
    -- row.
    select counted.* into v_counted from headroom.count_messages(
        p_user_id, p_messages, p_model, p_member, headroom.unknown_users_policy()
    ) as counted;
    return headroom.format_answer(p_user_id, v_counted.snapshot, p_messages, v_counted.parts);
end
$$;
alter function public.increment_and_check_usage(uuid, integer, text, uuid) owner to headroom_owner;
