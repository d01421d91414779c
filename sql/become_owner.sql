-- Lets the login that migrates act as headroom_owner, to which objects are handed over, until resign_owner.sql at the
-- end of the transaction. No other session sees this membership. A superuser needs none.
do $$
begin
    -- If the roles do not exist yet, roles.sql creates them, and this is executed again.
    if to_regrole('headroom_owner') is null or pg_has_role(current_user, 'headroom_owner', 'USAGE') then
        return;
    end if;
    begin
        execute format('grant headroom_owner to %I', current_user);
    exception
        when insufficient_privilege then
            raise exception '% may not act as headroom_owner, to which objects are handed over', current_user
                using errcode = 'insufficient_privilege',
                    hint = format(
                        'Have an administrator run: grant headroom_owner, headroom_service, headroom_operator to %I',
                        current_user
                    );
    end;
    perform set_config('headroom.is_member_for_now', 'yes', true);
    if not pg_has_role(current_user, 'headroom_owner', 'USAGE') then
        raise exception '% does not inherit the rights of headroom_owner', current_user
            using errcode = 'insufficient_privilege',
                hint = 'Migrate with a login that inherits the rights of its roles. That of PostgREST must not.';
    end if;
end
$$;
