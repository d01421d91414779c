-- Refuses to go on as a superuser if an adopted message_usage belongs to a role that is not one: the triggers, defaults
-- and constraints of its owner would run in this session, and could set its role back. The first migration checks more,
-- by check_adopted_table.sql.
do $$
declare
    v_owner text;
begin
    select owner.rolname into v_owner
    from pg_class as class
    join pg_roles as owner on owner.oid = class.relowner
    where class.oid = to_regclass('public.message_usage') and to_regclass('headroom.migrations') is not null
        and not owner.rolsuper and owner.rolname <> 'headroom_owner'
        and (select login.rolsuper from pg_roles as login where login.rolname = session_user);
    if found then
        raise exception 'message_usage belongs to %, whose triggers would run with the rights of %',
            v_owner, session_user
            using errcode = 'object_not_in_prerequisite_state', hint = format('Log in as %I for this.', v_owner);
    end if;
end
$$;
