-- Defines headroom.present_revisions on each worker as a query of the worker's own copy of headroom.plan_revision,
-- because Citus plans a query of the table itself again each time. If Citus copies its catalog to a worker again, the
-- view is as on the coordinator until the next headroom migrate: slower, but right. A superuser calls it.
create or replace function headroom.define_present_revisions() returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_statement text;
    v_failure text;
begin
    -- The copies have the same name on each machine, and stay where they are.
    select format(
        $statement$
        do $do$ begin
            set local citus.enable_ddl_propagation = off;
            create or replace view %s as %s
        end $do$;
        $statement$,
        'headroom.present_revisions'::regclass,
        replace(
            pg_get_viewdef('headroom.present_revisions'::regclass), 'headroom.plan_revision ',
            format('headroom.plan_revision_%s ', shardid)
        )
    ) into v_statement
    from pg_dist_shard where logicalrelid = 'headroom.plan_revision'::regclass;
    select format('%s:%s: %s', nodename, nodeport, result) into v_failure
    from run_command_on_workers(v_statement) where not success limit 1;
    if found then
        raise exception 'a view of a worker was not defined: %', v_failure;
    end if;
end
$$;
