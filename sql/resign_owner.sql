-- Ends the membership that become_owner.sql has granted. It is executed at the end of each migration's transaction.
do $$
begin
    if current_setting('headroom.is_member_for_now', true) = 'yes' then
        execute format('revoke headroom_owner from %I', current_user);
    end if;
end
$$;
