-- Reads a billing event as JSON, indented and compact. $1 text: source. $2 text: id.
select jsonb_pretty(shown.event) as pretty, shown.event::text as compact
from (
    select jsonb_build_object(
        'source', events.source, 'id', events.id, 'type', events.type,
        'at', headroom.instant_text(events.happened_at),
        'received_at', headroom.instant_text(events.received_at),
        'environment', events.environment, 'user', events.user_id, 'outcome', events.outcome,
        'problem', events.problem, 'attempts', events.attempts,
        'applied_at', headroom.instant_text(events.applied_at),
        'resulting_entitlement', events.resulting_entitlement, 'identities', to_jsonb(events.identities),
        'effects', events.effects, 'payload', events.payload
    ) as event
    from headroom.billing_events as events
    where events.source = $1 and events.id = $2
) as shown;
