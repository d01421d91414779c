-- What a poll for changes begins with: the database's clock, the revision of plans, and which transactions are visible.
-- Where that is what it was at the last poll, nothing has changed since.
select
    headroom.now() as observed_at,
    (select revised.revision from headroom.plan_revision as revised) as plan_revision,
    pg_catalog.pg_current_snapshot()::text as snapshot;
