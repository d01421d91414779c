-- A one-time purchase: messages for the current period.
create or replace function headroom.apply_grant_effect(
    p_notification headroom.store_notifications, p_effect jsonb, p_told text
) returns text
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_source constant text := p_notification.source;
    v_transaction constant text := p_effect ->> 'transaction';
    v_user_id constant uuid := coalesce(
        headroom.user_of_person(headroom.store_person(v_source, p_notification.identities)),
        (
            select headroom.user_of_person(owners.person) from headroom.store_owners as owners
            where owners.source = v_source and owners.transaction = v_transaction
            order by owners.step desc limit 1
        )
    );
    v_product headroom.store_products;
begin
    select * into v_product from headroom.store_products as products
    where products.source = v_source and products.product = p_effect ->> 'product';
    if v_product.messages is null then
        raise exception 'product % of % is mapped to no messages', quote_literal(p_effect ->> 'product'), v_source
            using errcode = 'HR004',
                hint = 'headroom product map SOURCE PRODUCT --messages N (0 to grant none), then headroom events replay '
                    '--failed.';
    elsif v_product.messages = 0 then
        return 'ignored';
    elsif v_user_id is null then
        raise exception 'nobody is known by its identities'
            using errcode = 'HR003',
                hint = 'It is applied by itself as soon as an event that names both the user''s UUID and one of them comes.';
    end if;
    insert into headroom.store_purchases as purchases (source, transaction, user_id, happened_at, messages)
    values (
        v_source, v_transaction, v_user_id, p_notification.happened_at,
        v_product.messages::bigint * coalesce((p_effect ->> 'quantity')::integer, 1)
    )
    on conflict (source, transaction) do update set messages = excluded.messages where purchases.granted is null;
    perform headroom.settle_store_purchase(v_source, v_transaction, p_told, p_notification.id);
    return 'applied';
end
$$;
revoke all on function headroom.apply_grant_effect(headroom.store_notifications, jsonb, text) from public;
grant execute on function headroom.apply_grant_effect(headroom.store_notifications, jsonb, text) to headroom_service;
