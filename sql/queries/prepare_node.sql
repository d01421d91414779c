-- Prepares this server to be a node of a distributed database: creates the extension, and sets the settings of the
-- database.
do $$
declare
    v_setting text;
begin
    create extension if not exists citus;
    set local citus.enable_ddl_propagation = off;
    foreach v_setting in array array[
        -- Triggers of Headroom write rows of the same user only.
        'citus.enable_unsafe_triggers',
        -- Functions that a query calls read tables of users.
        'citus.allow_nested_distributed_execution'
    ] loop
        execute format('alter database %I set %s = on', current_database(), v_setting);
        -- The setting of the database is for later sessions; this one is for the present session.
        perform set_config(v_setting, 'on', false);
    end loop;
end
$$;
