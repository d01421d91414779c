-- Reads the newest $2 entries of user $1 in the audit trail, oldest first. They are ordered by time, because in a
-- distributed database each server has numbers of its own.
select newest.at, newest.action, newest.detail, newest.actor, newest.reason
from (
    select entries.* from public.audit_trail as entries
    where entries.user_id = $1
    order by entries.at desc, entries.id desc limit $2
) as newest
order by newest.at, newest.id;
