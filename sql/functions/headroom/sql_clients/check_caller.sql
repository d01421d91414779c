-- Raises insufficient_privilege if the caller may not count for this user. A role that may execute reset_usage may
-- count for every user, and for every member. All other roles may only count for the user that
-- headroom.requesting_user returns, and for no other member.
--
-- The caller is the role that was set (PostgREST sets one for each request), otherwise the login. In a SECURITY DEFINER
-- function, current_user is the owner. All users of an application may have this role, so no hint names a right for it.
create or replace function headroom.check_caller(p_user_id uuid, p_member uuid default null) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_caller constant name := coalesce(nullif(current_setting('role', true), 'none'), session_user);
    v_user_id uuid;
begin
    if has_function_privilege(v_caller, 'public.reset_usage(uuid, text, text, uuid)', 'EXECUTE') then
        return;
    end if;
    v_user_id := headroom.requesting_user();
    if v_user_id is null or p_user_id is distinct from v_user_id or p_member <> v_user_id then
        raise exception '%', case
            when v_user_id is null then format('nobody is signed in, and %s may count for nobody else', v_caller)
            else format('%s may count for the own user only', v_caller)
        end using errcode = 'insufficient_privilege', hint = format(
            'A client counts for the user that its token names in sub. A backend connects as a role of its own with '
            'the rights of headroom_service; on Supabase, service_role has them. %s must not have them: each of its '
            'users could count for all.', v_caller
        );
    end if;
end
$$;
