-- Grants headroom_owner CREATE on the schema public for a moment: `alter … owner to headroom_owner` requires it.
-- rights.sql revokes it in the same transaction.
do $$
begin
    if not has_schema_privilege('headroom_owner', 'public', 'CREATE') then
        grant create on schema public to headroom_owner;
    end if;
end
$$;
