-- name: read_user_events
-- What stores told of user $1, the newest first; $2 of them at most.
select
    event.event_at, event.source, event.kind, event.outcome, event.plan, event.product, event.expires_at
from headroom.store_events as event
where event.user_id = $1
order by event.event_at desc, event.source, event.event_id
limit $2::bigint;
