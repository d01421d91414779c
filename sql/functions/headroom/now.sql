-- The one clock. Everything asks this function and nothing else, so that a test can move time in the database. It is
-- inlined into every statement that calls it, so it costs what now() costs.
create or replace function headroom.now() returns timestamptz
    language sql stable parallel safe
    return pg_catalog.now();
grant execute on function headroom.now() to headroom_operator, headroom_dashboard;
