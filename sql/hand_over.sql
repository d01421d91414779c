-- Functions are handed over to headroom_service (`alter function … owner to`), which needs the right to create in their
-- schemas for that: rights.sql takes it back in the same transaction. A right that it has through PUBLIC stays.
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
