-- Shows the messages of each user by member of an account.
create or replace view headroom.usage_by_member as
select
    parts.user_id, parts.user, parts.period, parts.kind, parts.name, parts.label, parts.used, parts.held, parts."limit",
    parts.tier, parts.window_used, parts.window_held, parts.window_limit, parts.window_resets, parts.weight,
    parts.fallback, parts.bucket
from headroom.part_usage_rows as parts
where parts.kind = 'member';
comment on view headroom.usage_by_member is
    'Messages per user, billing period and member, of plans with a limit in headroom.plan_limits.';
grant select on headroom.usage_by_member to headroom_service, headroom_operator;
