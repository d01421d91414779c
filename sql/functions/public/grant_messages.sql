-- Grants a user messages beyond the plan's allowance: in the current period, or with p_expires_at as a balance that is
-- used in any period until then; infinity is never. With a key it grants once; without one, each call grants. Returns
-- the user's usage.
create or replace function public.grant_messages(
    p_user_id uuid, p_messages integer, p_reason text default null, p_key text default null,
    p_expires_at timestamptz default null
) returns headroom.answer
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if headroom.grant_once(
        p_user_id, p_messages, p_reason, p_key, p_expires_at, headroom.unknown_users_policy()
    ) then
        raise notice 'this key has already granted these messages; nothing was changed';
    end if;
    return headroom.format_answer(
        p_user_id, headroom.read_usage_snapshot(p_user_id, headroom.unknown_users_policy()), 0
    );
end
$$;
alter function public.grant_messages(uuid, integer, text, text, timestamptz) owner to headroom_owner;
