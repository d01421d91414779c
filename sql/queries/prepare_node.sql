-- Prepares this server to be a node of a distributed database: the extension, and the settings of the database.
do $$
begin
    create extension if not exists citus;
    set local citus.enable_ddl_propagation = off;
    -- Triggers of Headroom write rows of the same user only.
    execute format('alter database %I set citus.enable_unsafe_triggers = on', current_database());
    -- Functions that a query calls read tables of users.
    execute format('alter database %I set citus.allow_nested_distributed_execution = on', current_database());
end
$$;
