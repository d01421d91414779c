-- A customer's events with what became of each, as headroom.read_customer returns them. Null where there are none.
create or replace function headroom.customer_events(p_customer_id bigint) returns json
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select json_agg(json_build_object(
            'source', events.source, 'id', events.id, 'at', events.happened_at, 'received_at', events.received_at,
            'environment', events.environment, 'identities', events.identities, 'effects', events.effects,
            'user', events.user_id, 'outcome', events.outcome, 'lacks', events.lacks,
            'lacks_product', events.lacks_product, 'problem', events.problem
        ))
        from headroom.billing_events as events
        where events.customer_id = p_customer_id and events.effects is not null
    );
end
$$;
revoke all on function headroom.customer_events(bigint) from public;
grant execute on function headroom.customer_events(bigint) to headroom_service;
