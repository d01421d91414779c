-- Returns the name of a table from that of one of its shards, which Citus names table_NUMBER; any other name as it is.
-- Triggers call it, which Citus fires on shards.
create or replace function headroom.table_of_shard(p_name text) returns text
    language sql immutable parallel safe
    return regexp_replace(p_name, '_[0-9]+$', '');
