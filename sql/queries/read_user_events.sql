-- name: read_user_events
-- What stores told of user $1, the newest first; $2 of them at most: their notifications, and events that came without
-- one, by apply_store_event. A notification's events have its id, or that, a slash and a number.
select events.happened_at, events.source, events.type, events.outcome, events.detail, events.problem
from (
    select
        notification.happened_at, notification.source, notification.type, notification.outcome,
        headroom.change_text(null, notification.effect) as detail, notification.problem, notification.id
    from headroom.store_notifications as notification
    where notification.user_id = $1
    union all
    select
        event.event_at, event.source, event.kind, event.outcome,
        concat_ws(
            ', ', 'plan ' || event.plan, 'product ' || event.product, 'expires ' || headroom.instant_text(event.expires_at)
        ),
        null, event.event_id
    from headroom.store_events as event
    where event.user_id = $1 and not exists (
        select from headroom.store_notifications as notification
        where notification.source = event.source
            and notification.id in (event.event_id, regexp_replace(event.event_id, '/[0-9]+$', ''))
    )
) as events
order by events.happened_at desc, events.source, events.id
limit $2::bigint;
