-- The audit log in words, user by user. With the bucket named, a condition on user_id finds its rows by their index.
create or replace view public.user_story as
select
    audit.user_id, audit.at::timestamptz, audit.action as what,
    headroom.change_text(audit.before, audit.after) as detail, audit.actor, audit.reason, audit.event_id, audit.id
from headroom.audit_log as audit
where audit.bucket = headroom.bucket_of(audit.user_id) and audit.user_id is not null;
comment on view public.user_story is
    'What was changed for a user, by whom and why: select * from user_story where user_id = … order by id.';
grant select on public.user_story to headroom_service, headroom_dashboard, headroom_operator;
