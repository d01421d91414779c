-- Registers the import of a file. $1 bytea: SHA-256 of the file. $2 boolean: whether counts are added. $3 text: name of
-- the file. $4 bigint: number of its rows.
select begun.done, begun.finished_at from headroom.begin_import($1, $2, $3, $4) as begun;
