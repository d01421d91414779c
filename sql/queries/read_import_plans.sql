-- Reads the plans that an import may name, and the namespace of users' names, which is null if users are UUIDs.
select plans.plan, plans.cycle, (select namespace.id from headroom.user_namespace as namespace) as namespace
from headroom.plans as plans
order by plans.plan;
