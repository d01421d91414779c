-- Shows the audit log as text, per user. Because the bucket is named, a condition on user_id uses the index.
create or replace view public.audit_trail as
select
    audit.user_id, audit.at::timestamptz, audit.action,
    headroom.change_text(audit.before, audit.after) as detail, audit.actor, audit.reason, audit.event_id, audit.id
from headroom.audit_log as audit
where audit.bucket = headroom.bucket_of(audit.user_id) and audit.user_id is not null;
comment on view public.audit_trail is
    'The changes to a user, with actor and reason: select * from audit_trail where user_id = … order by at, id.';
