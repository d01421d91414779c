-- Usage rows, each with a usage snapshot of its columns alone. It is the user's present one while the row is usable
-- (headroom.is_usable); after that, held may include expired holds. PostgreSQL inlines the view, so that
-- (….snapshot).* reads the columns only. The other columns are for conditions. A row without a plan, as older clients
-- write it, counts as the plan paid.
create or replace view headroom.row_snapshots as
select
    usage.bucket, usage.user_id, usage.billing_period, usage.updated_at, usage.usable_until, usage.plan_revision,
    usage.entitlement_version,
    row(
        coalesce(usage.plan, 'paid'), coalesce(usage.state, 'active'), null, usage.billing_period, usage.message_count,
        usage.held, usage."limit", coalesce(usage.started_at, usage.updated_at), usage.resets_at, usage.expires_at,
        usage.previous_plan, usage.renews, headroom.now(), usage.plan_revision, 0,
        case when usage.window_limit is not null and usage.window_ends_at > headroom.now()
            then usage.window_opened_at
        end,
        case when usage.window_limit is not null and usage.window_ends_at > headroom.now()
            then usage.window_ends_at
        end,
        case
            when usage.window_limit is null then null
            when usage.window_ends_at > headroom.now() then usage.window_count
            else 0
        end,
        case
            when usage.window_limit is null then null
            when usage.window_ends_at > headroom.now() then usage.window_held
            else 0
        end,
        usage.window_limit
    )::headroom.usage_snapshot as snapshot
from public.message_usage as usage;
comment on view headroom.row_snapshots is 'Usage rows, each with a usage snapshot of its columns alone.';
grant select on headroom.row_snapshots to headroom_service;
