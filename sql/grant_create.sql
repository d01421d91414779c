-- Grants headroom_service CREATE on both schemas for a moment: `alter function … owner to headroom_service` requires
-- it. rights.sql revokes it in the same transaction.
do $$
declare
    v_schema text;
begin
    foreach v_schema in array array['headroom', 'public'] loop
        if not has_schema_privilege('headroom_service', v_schema, 'CREATE') then
            execute format('grant create on schema %I to headroom_service', v_schema);
        end if;
    end loop;
end
$$;
