-- Shows the revisions of plans, of words and of the map of buckets, for functions that count. On a worker of a
-- distributed database, the view selects from the worker's own copy of the table (headroom.define_present_revisions):
-- reading headroom.plan_revision there takes 0.1 ms, because Citus plans the query each time.
create or replace view headroom.present_revisions as
select revised.revision, revised.words_revision, revised.buckets_revision
from headroom.plan_revision as revised;
comment on view headroom.present_revisions is 'The revisions of plans, of words and of the map of buckets.';
grant select on headroom.present_revisions to headroom_service;
