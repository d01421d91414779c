-- Reads the tables that are divided into buckets, the number of rows that PostgreSQL estimates, and whether the table
-- has a complete index by which headroom.divide_users finds users.
select
    tables.name,
    greatest(class.reltuples, pg_stat_get_live_tuples(class.oid), 0)::bigint as rows,
    coalesce(index.indisvalid, false) as has_index,
    index.indexrelid is not null as has_begun_index
from unnest(headroom.divided_tables()) with ordinality as tables (name, ordinal)
join pg_class as class on class.oid = tables.name::regclass
left join pg_index as index
    on index.indrelid = class.oid and index.indexrelid = to_regclass(headroom.part_index(tables.name))
order by tables.ordinal;
