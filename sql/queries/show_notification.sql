-- name: show_notification
-- All that is kept of a notification, as JSON, for people (indented) and for programs. $1 text: source. $2 text: id.
select jsonb_pretty(shown.notification) as pretty, shown.notification::text as compact
from (
    select jsonb_build_object(
        'source', notifications.source, 'id', notifications.id, 'type', notifications.type,
        'at', to_char(notifications.happened_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        'received_at', to_char(notifications.received_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        'environment', notifications.environment, 'user', notifications.user_id, 'outcome', notifications.outcome,
        'problem', notifications.problem, 'attempts', notifications.attempts,
        'applied_at', to_char(notifications.applied_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        'effect', notifications.effect, 'identities', to_jsonb(notifications.identities), 'effects', notifications.effects,
        'payload', notifications.payload
    ) as notification
    from headroom.store_notifications as notifications
    where notifications.source = $1 and notifications.id = $2
) as shown;
