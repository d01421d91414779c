-- Autovacuum never looks at tables with so few changed rows. Without statistics PostgreSQL expects hundreds of rows in
-- them, and compiles the statements of the reports, which read them often: fifteen seconds for one of milliseconds.
analyze headroom.plans, headroom.plan_revision;
