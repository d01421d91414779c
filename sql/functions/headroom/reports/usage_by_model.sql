-- Shows the messages of each user by model, or models that share a limit.
create or replace view headroom.usage_by_model as
select
    parts.user_id, parts.user, parts.period, parts.kind, parts.name, parts.label, parts.used, parts.held, parts."limit",
    parts.tier, parts.window_used, parts.window_held, parts.window_limit, parts.window_resets, parts.weight,
    parts.fallback, parts.bucket
from headroom.part_usage_rows as parts
where parts.kind = 'model';
comment on view headroom.usage_by_model is
    'Messages per user, billing period and model, of plans with a limit in headroom.plan_limits.';
grant select on headroom.usage_by_model to headroom_service, headroom_operator;
