-- Raises insufficient_privilege if the caller may not count for this user. A role that may execute reset_usage may
-- count for every user. All other roles may only count for the user that headroom.requesting_user returns.
--
-- The caller is the role that was set (PostgREST sets one for each request), else the login. In a SECURITY DEFINER
-- function, current_user is the owner.
create or replace function headroom.check_caller(p_user_id uuid) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_caller constant name := coalesce(nullif(current_setting('role', true), 'none'), session_user);
    v_user_id uuid;
begin
    if has_function_privilege(v_caller, 'public.reset_usage(uuid, text)', 'EXECUTE') then
        return;
    end if;
    v_user_id := headroom.requesting_user();
    if v_user_id is null then
        raise exception 'nobody is signed in, and % may count for nobody else', v_caller
            using errcode = 'insufficient_privilege', hint = format(
                'A client brings a token whose sub is its user''s id. A backend needs: grant headroom_service to %I',
                v_caller
            );
    elsif p_user_id is distinct from v_user_id then
        raise exception '% may count for the own user only', v_caller
            using errcode = 'insufficient_privilege', hint = format(
                'p_user_id must be the user of the token''s sub. A backend needs: grant headroom_service to %I',
                v_caller
            );
    end if;
end
$$;
