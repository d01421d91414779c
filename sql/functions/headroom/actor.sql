-- Who is at it. Neither current_user, which is the owner inside a SECURITY DEFINER function, nor only the role that
-- logged in, which all clients of a pooler share. A dashboard with accounts of its own names its person by
-- set headroom.actor.
create or replace function headroom.actor() returns text
    language sql stable
    return coalesce(
        nullif(pg_catalog.current_setting('headroom.actor', true), ''),
        nullif(pg_catalog.current_setting('role', true), 'none'),
        session_user::text
    );
grant execute on function headroom.actor() to headroom_operator;
