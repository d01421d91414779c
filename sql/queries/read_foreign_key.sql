-- Reads the table to which a foreign key of message_usage on user_id refers. No row for any other constraint. $1 text:
-- name of the constraint.
select con.confrelid::regclass::text as referenced
from pg_catalog.pg_constraint as con
join pg_catalog.pg_attribute as attribute
    on attribute.attrelid = con.conrelid and attribute.attname = 'user_id' and attribute.attnum = any(con.conkey)
where con.conrelid = 'public.message_usage'::regclass and con.contype = 'f' and con.conname = $1;
