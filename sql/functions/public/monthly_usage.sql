-- Shows usage rows for dashboards, and for each end user the own ones. distributed.sql replaces the view if Citus
-- distributes the rows.
create or replace view public.monthly_usage as
-- PostgreSQL evaluates the condition once, and does not begin with the rows if it is false.
select usage.* from headroom.monthly_usage as usage
where (select headroom.reads_every_user())
union all
select usage.* from headroom.requesting_usage() as usage
where not (select headroom.reads_every_user());
comment on view public.monthly_usage is
    'A row per user and billing period; end users see their own. The period that counts for the user now is shown as '
    'it would be answered, the others as of their last message; "limit" null is unlimited; is_open is true for the '
    'period that counts now; a trial that is over is not open.';
