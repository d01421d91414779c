-- Begins a poll for changes. It returns the database's clock, the revisions of plans and words, and the present
-- snapshot. If the snapshot is that of the previous poll, nothing has changed.
select
    headroom.now() as observed_at,
    (select revised.revision from headroom.plan_revision as revised) as plan_revision,
    (select revised.words_revision from headroom.plan_revision as revised) as words_revision,
    pg_catalog.pg_current_snapshot()::text as snapshot;
