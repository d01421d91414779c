-- Returns whether the calling role reads the usage of every user. An end user's role does not.
create or replace function headroom.reads_every_user() returns boolean
    language sql stable parallel safe
    return pg_catalog.has_table_privilege('public.current_usage', 'SELECT');
