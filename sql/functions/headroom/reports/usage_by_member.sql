-- Shows the messages of each user by member of an account. Instants are whole seconds.
create or replace view headroom.usage_by_member as
select
    parts.user_id,
    parts.user_id as user,
    parts.billing_period as period,
    parts.name,
    parts.used,
    parts.held,
    parts."limit",
    parts.tier,
    parts.window_used,
    parts.window_limit,
    date_trunc('second', parts.window_resets) as window_resets
from headroom.part_usage_rows as parts
where parts.kind = 'member';
comment on view headroom.usage_by_member is
    'Messages per user, billing period and member, of plans with a limit in headroom.plan_limits.';
grant select on headroom.usage_by_member to headroom_service, headroom_operator;
