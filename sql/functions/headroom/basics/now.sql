-- Returns the current time. Everything uses this function, so that a test can set the time in the database. PostgreSQL
-- inlines it, so it costs as much as now().
create or replace function headroom.now() returns timestamptz
    language sql stable parallel safe
    return pg_catalog.now();
