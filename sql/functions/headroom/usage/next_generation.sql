-- Returns a number for a new usage row (the column generation). It is in PL/pgSQL, which PostgreSQL does not inline:
-- Citus sends no query that calls nextval by itself to the machine that has the rows.
create or replace function headroom.next_generation() returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    return nextval('headroom.generations');
end
$$;
