-- Reads all plans and their revision, from one snapshot.
select
    revised.revision, plans.plan, plans.label, plans.cycle, plans.time_zone, plans.allowance, plans.enforced,
    plans.trial_days, plans.gentle_percent, plans.prominent_percent, plans.window_messages, plans.window_seconds
from headroom.plans as plans
cross join headroom.plan_revision as revised;
