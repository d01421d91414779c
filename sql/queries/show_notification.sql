-- Reads a notification as JSON, indented and compact. $1 text: id.
select jsonb_pretty(shown.notification) as pretty, shown.notification::text as compact
from (
    select jsonb_build_object(
        'id', notifications.id, 'created_at', headroom.instant_text(notifications.created_at),
        'user', notifications.user_id, 'period', notifications.billing_period, 'plan', notifications.plan,
        'allowance', notifications.allowance, 'part', notifications.part, 'tier', notifications.tier,
        'status',
        case notifications.status
            when 'p' then 'pending' when 'd' then 'delivered' when 's' then 'skipped' else 'failed'
        end,
        'attempts', notifications.attempts, 'problem', notifications.problem,
        'next_attempt_at',
        case notifications.status when 'p' then headroom.instant_text(notifications.next_attempt_at) end,
        'delivered_at', headroom.instant_text(notifications.delivered_at), 'body', notifications.body::jsonb
    ) as notification
    from headroom.notifications as notifications
    where notifications.id::text = lower($1)
) as shown;
