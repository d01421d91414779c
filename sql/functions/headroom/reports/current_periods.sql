-- Shows one row per user: the period with which CHECK would answer now, and the answer. It is in the user's usable row,
-- or otherwise it is derived.
--
-- The view is a security barrier and has an ORDER BY that sorts nothing, so that PostgreSQL computes the answer once
-- per row, and only if it is used (headroom.judged_usage_rows).
create or replace view headroom.current_periods with (security_barrier) as
select periods.*, headroom.current_answer(periods.user_id) as answer
from (
    select
        usage.user_id, usage.billing_period, usage.plan, usage.state, usage.used, usage.held, usage."limit", usage.tier,
        usage.started_at, usage.resets_at, usage.expires_at, usage.updated_at, true as is_open, false as has_no_access
    from headroom.usage_rows as usage
    where usage.is_usable
    union all
    select
        derived.user_id, derived.billing_period, derived.plan, derived.state, derived.used, derived.held,
        derived."limit", derived.tier, derived.started_at, derived.resets_at, derived.expires_at, derived.updated_at,
        derived.resets_at is not null or derived.denial_reason is null as is_open,
        derived.denial_reason is not null as has_no_access
    from headroom.derived_usage as derived
) as periods
order by null::boolean;
