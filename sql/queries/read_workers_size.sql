-- Reads the number of bytes that this database takes on the workers.
select coalesce(sum(result::bigint) filter (where success), 0)::bigint as bytes
from run_command_on_workers('select pg_database_size(current_database())');
