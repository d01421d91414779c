-- Reads all plans and their revision, from one snapshot. limits: the rows of headroom.plan_limits of a plan, as a JSON
-- array of objects without their nulls; null if it has none.
select
    revised.revision, plans.plan, plans.label, plans.cycle, plans.time_zone, plans.allowance, plans.enforced,
    plans.trial_days, plans.gentle_percent, plans.prominent_percent, plans.window_messages, plans.window_seconds,
    (
        select jsonb_agg(jsonb_strip_nulls(to_jsonb(limits) - 'plan') order by limits.kind, limits.name)
        from headroom.plan_limits as limits
        where limits.plan = plans.plan
    )::text as limits
from headroom.plans as plans
cross join headroom.plan_revision as revised;
