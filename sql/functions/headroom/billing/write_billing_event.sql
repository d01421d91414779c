-- Inserts a billing event, or replaces the record of an earlier attempt to apply it. p_event: "event" in the parameter
-- of headroom.write_customer. p_resulting_entitlement: the plan and access of its user after it was applied.
create or replace function headroom.write_billing_event(p_event jsonb, p_resulting_entitlement jsonb) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    insert into headroom.billing_events as events (
        source, id, customer_id, type, happened_at, received_at, environment, identities, effects, payload, user_id,
        outcome, missing_prerequisite, unmapped_product, problem, resulting_entitlement, attempts, applied_at
    )
    select
        written.source, written.id, written.customer, written.type, written.at, headroom.now(), written.environment,
        written.identities, written.effects, written.payload, written."user", written.outcome,
        written.missing_prerequisite, written.unmapped_product, written.problem,
        case when written.outcome <> 'failed' then p_resulting_entitlement end, 1,
        case when written.outcome <> 'failed' then headroom.now() end
    from jsonb_to_record(p_event) as written (
        source text, id text, customer bigint, type text, at timestamptz, environment text, identities text[],
        effects jsonb, payload jsonb, "user" uuid, outcome text, missing_prerequisite text, unmapped_product text,
        problem text
    )
    on conflict (source, id) do update
    set customer_id = excluded.customer_id, type = excluded.type, happened_at = excluded.happened_at,
        environment = excluded.environment, identities = excluded.identities, effects = excluded.effects,
        payload = excluded.payload, user_id = excluded.user_id, outcome = excluded.outcome,
        missing_prerequisite = excluded.missing_prerequisite, unmapped_product = excluded.unmapped_product,
        problem = excluded.problem, resulting_entitlement = excluded.resulting_entitlement,
        attempts = events.attempts + 1,
        -- A replay keeps the time: it decides whether a trial was spent (StoreTrials).
        applied_at = case when excluded.outcome <> 'failed' then coalesce(events.applied_at, excluded.applied_at) end
    where events.outcome <> 'forgotten';
end
$$;
