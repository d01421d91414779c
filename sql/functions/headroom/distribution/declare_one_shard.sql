-- Declares the tables of users, which headroom.convert_tables has made tables of Citus, to be distributed by bucket and
-- to have one shard each, with all buckets. Citus can then split that shard while messages are counted. Its own
-- create_distributed_table would copy all rows while it locks the tables, and refuses a table with the primary key of
-- message_usage.
--
-- It changes Citus's catalog on each machine in a transaction of its own, so it can be called again after a failure. It
-- must lock no table before: Citus would lock it on the workers, too, where these transactions would wait for it. A
-- superuser calls it, while citus.enable_manual_metadata_changes_for_user names that superuser on each machine.
create or replace function headroom.declare_one_shard() returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    -- No table of Citus has such a number before, and it is the same on each machine.
    v_colocation integer;
    v_statements text;
    v_failure text;
begin
    select colocationid into v_colocation from pg_dist_partition
    where logicalrelid = 'public.message_usage'::regclass and partmethod = 'h';
    if not found then
        v_colocation := nextval('pg_dist_colocationid_seq');
    end if;
    select string_agg(
        format(
            $statement$
            do $do$ begin
                if not exists (select from pg_dist_colocation where colocationid = %1$s) then
                    perform citus_internal.add_colocation_metadata(%1$s, 1, 1, 'smallint'::regtype, 0);
                end if;
                if exists (select from pg_dist_partition where logicalrelid = %2$L::regclass and partmethod = 'n') then
                    perform citus_internal.delete_partition_metadata(%2$L::regclass);
                    perform citus_internal.add_partition_metadata(%2$L::regclass, 'h', 'bucket', %1$s, 's');
                    update pg_dist_shard set shardminvalue = '-2147483648', shardmaxvalue = '2147483647'
                    where logicalrelid = %2$L::regclass;
                end if;
            end $do$;
            $statement$,
            v_colocation, tables.name
        ),
        '' order by tables.ordinal
    ) into v_statements
    from unnest(headroom.distributed_tables()) with ordinality as tables (name, ordinal);
    select format('%s:%s: %s', nodename, nodeport, result) into v_failure
    from run_command_on_workers(v_statements) where not success limit 1;
    if found then
        raise exception 'the catalog of a worker was not changed: %', v_failure;
    end if;
    execute v_statements;
    update headroom.plan_revision set buckets_revision = buckets_revision + 1;
end
$$;
