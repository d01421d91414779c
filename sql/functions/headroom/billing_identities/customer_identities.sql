-- Returns each list of identities in a customer's events: the identities of the event itself, and those in its effects.
create or replace function headroom.customer_identities(p_customer_id bigint) returns table (
    source text, event_id text, happened_at timestamptz, identities text[]
)
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select events.source, events.id, events.happened_at::timestamptz, lists.identities
    from headroom.billing_events as events
    cross join lateral (
        select events.identities
        union all
        select headroom.effect_identities(events.effects)
    ) as lists (identities)
    where events.customer_id = p_customer_id;
end
$$;
