-- Reads the tables that are divided into buckets, the number of rows that PostgreSQL estimates, the name of the index
-- by which headroom.divide_users finds users, whether there is one, and whether it is complete.
select
    tables.schema || '.' || tables.name as name,
    greatest(class.reltuples, pg_stat_get_live_tuples(class.oid), 0)::bigint as rows,
    tables.name || '_part' as part_index,
    index.indexrelid is not null as has_index,
    coalesce(index.indisvalid, false) as has_valid_index
from (
    select split_part(divided.name, '.', 1) as schema, split_part(divided.name, '.', 2) as name, divided.ordinal
    from unnest(headroom.divided_tables()) with ordinality as divided (name, ordinal)
) as tables
join pg_class as class on class.oid = (tables.schema || '.' || tables.name)::regclass
left join pg_index as index
    on index.indrelid = class.oid
        and index.indexrelid = to_regclass(tables.schema || '.' || tables.name || '_part')
order by tables.ordinal;
