-- One effect on a subscription, as the event that it is. Returns what became of it.
create or replace function headroom.apply_subscription_effect(
    p_notification headroom.store_notifications, p_effect jsonb, p_place integer, p_told text
) returns text
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_source constant text := p_notification.source;
    v_transaction constant text := p_effect ->> 'transaction';
    v_kind constant text := p_effect ->> 'kind';
    v_next_product constant text := case v_kind when 'product_changed' then p_effect ->> 'next_product' end;
    v_is_temporary constant boolean := v_kind = 'temporary';
    v_is_needed constant boolean := v_kind in ('purchased', 'renewed', 'temporary', 'product_changed');
    v_expires timestamptz := (p_effect ->> 'expires')::timestamptz;
    v_person text;
    v_event headroom.store_events;
    v_outcome text;
begin
    if v_is_temporary then
        v_expires := least(v_expires, p_notification.happened_at + interval '24 hours');
    end if;
    v_event := headroom.read_store_event(jsonb_strip_nulls(jsonb_build_object(
        'id', p_notification.id || case when p_place > 1 then '/' || p_place else '' end,
        'source', v_source,
        'at', to_char(p_notification.happened_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'transaction', v_transaction,
        -- It gives access and begins no period: nothing was paid yet.
        'kind', case when v_is_temporary then 'extended' else v_kind end,
        -- Without an end, what is no payment waits for one: it would give access for good.
        'plan', case
            when v_next_product is null and (v_is_needed or v_expires is not null or v_kind in ('expired', 'revoked'))
                then headroom.plan_of_product(v_source, p_effect ->> 'product', p_effect ->> 'period', v_is_needed)
        end,
        'product', case when v_next_product is null then p_effect ->> 'product' end,
        'next_plan', headroom.plan_of_product(v_source, v_next_product, 'normal', true),
        'next_product', v_next_product,
        'started', p_effect ->> 'started',
        'expires', to_char(v_expires at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'grace_until', case when v_kind in ('grace_period', 'billing_retry') then p_effect ->> 'grace_until' end,
        'environment', p_notification.environment
    )));
    -- When it was received first: what set_plan declared since then holds, also when it is applied again.
    v_event.received_at := p_notification.received_at;
    select owners.person, case when owners.step > 0 then owners.since end
    into v_person, v_event.transferred_at
    from headroom.store_owners as owners
    where owners.source = v_source and owners.transaction = v_transaction
    order by owners.step desc limit 1;
    v_event.user_id := coalesce(
        headroom.user_of_person(v_person),
        (
            select events.user_id from headroom.store_events as events
            where events.source = v_source and events.original_transaction_id = v_transaction
                and events.user_id is not null and v_person is null
            order by events.event_at desc, events.event_id limit 1
        ),
        (
            select purchases.user_id from headroom.store_purchases as purchases
            where purchases.source = v_source and purchases.transaction = v_transaction
        )
    );
    if v_event.user_id is null then
        raise exception 'nobody is known by its identities or its transaction'
            using errcode = 'HR003',
                hint = 'It is applied by itself as soon as an event that names both the user''s UUID and one of them comes.';
    end if;
    perform headroom.check_store_event(v_event);
    v_outcome := headroom.apply_read_event(v_event, p_told);
    if v_kind in ('revoked', 'reinstated')
        and headroom.settle_store_purchase(v_source, v_transaction, p_told, p_notification.id)
    then
        v_outcome := 'applied';
    end if;
    return v_outcome;
end
$$;
revoke all on function headroom.apply_subscription_effect(headroom.store_notifications, jsonb, integer, text) from public;
grant execute on function headroom.apply_subscription_effect(headroom.store_notifications, jsonb, integer, text) to headroom_service;
