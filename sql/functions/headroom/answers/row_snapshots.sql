-- Shows usage rows, each with its usage snapshot (headroom.row_snapshot). PostgreSQL inlines the view, so that
-- (….snapshot).* reads the columns only. The other columns are for conditions. Citus plans a query of the view again
-- each time.
create or replace view headroom.row_snapshots as
select
    usage.bucket, usage.user_id, usage.billing_period, usage.updated_at, usage.usable_until, usage.plan_revision,
    usage.entitlement_version,
    headroom.row_snapshot(
        usage.plan, usage.state, usage.billing_period, usage.message_count, usage.held, usage."limit",
        usage.started_at, usage.updated_at, usage.resets_at, usage.expires_at, usage.previous_plan, usage.renews,
        usage.plan_revision, usage.window_opened_at, usage.window_ends_at, usage.window_count, usage.window_held,
        usage.window_limit, usage.extra, usage.extra_expires, headroom.now()
    ) as snapshot
from public.message_usage as usage;
comment on view headroom.row_snapshots is 'Usage rows, each with a usage snapshot of its columns alone.';
grant select on headroom.row_snapshots to headroom_service;
