-- Returns who makes a change, for the audit log: the setting headroom.actor, otherwise the role that was set, otherwise
-- the role that logged in.
--
-- current_user would be the owner of a SECURITY DEFINER function, and the login alone is shared by all clients of a
-- connection pooler. A dashboard with accounts of its own sets headroom.actor.
create or replace function headroom.actor() returns text
    language sql stable
    return coalesce(
        nullif(pg_catalog.current_setting('headroom.actor', true), ''),
        nullif(pg_catalog.current_setting('role', true), 'none'),
        session_user::text
    );
