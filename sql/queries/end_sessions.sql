-- Ends the sessions of the service and of programs with its rights, which then open others with the present settings of
-- the database. A statement that a session was executing is rolled back, or found to be committed by its receipt.
select count(pg_terminate_backend(activity.pid))::integer as ended
from pg_stat_activity as activity
join pg_roles as login on login.rolname = activity.usename
where activity.datname = current_database() and activity.pid <> pg_backend_pid()
    and activity.backend_type = 'client backend' and activity.application_name <> 'headroom migrate'
    and (
        activity.application_name like 'headroom %'
        or not login.rolsuper and pg_has_role(login.oid, 'headroom_service', 'MEMBER')
    );
