-- Returns the number of pages of message_usage, or of another table of users, with which a scan by ranges of pages
-- begins. If the table is distributed, it is that of its largest shard, because Citus reads a range of each shard; the
-- table itself is empty then.
create or replace function headroom.usage_pages(p_table regclass default 'public.message_usage') returns bigint
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_bytes bigint := pg_relation_size(p_table);
begin
    if headroom.is_distributed() then
        -- The query is a text, because the function exists only with Citus.
        execute 'select max(result::bigint) from run_command_on_shards($1, $2)' into v_bytes
        using p_table, 'select pg_relation_size(''%s'')';
    end if;
    return v_bytes / current_setting('block_size')::bigint;
end
$$;
