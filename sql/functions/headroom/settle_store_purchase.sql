-- Grants what a one-time purchase bought, unless it was refunded; takes it back after a refund, while the period runs in
-- which it was granted. Called again it changes nothing. Returns whether there is such a purchase.
create or replace function headroom.settle_store_purchase(
    p_source text, p_transaction text, p_told text, p_id text
) returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_key constant text := headroom.store_grant_key(p_source, p_transaction);
    v_purchase headroom.store_purchases;
    v_is_refunded boolean;
begin
    select * into v_purchase from headroom.store_purchases as purchases
    where purchases.source = p_source and purchases.transaction = p_transaction;
    if not found then
        return false;
    end if;
    select events.kind = 'revoked' into v_is_refunded
    from headroom.store_events as events
    where events.source = p_source and events.original_transaction_id = p_transaction
        and events.kind in ('revoked', 'reinstated')
    order by events.event_at desc, events.event_id collate "C" desc
    limit 1;
    if v_is_refunded is not true and v_purchase.granted is null then
        if v_purchase.messages > 1000000 then
            raise exception 'the purchase is of % messages, and a grant has at most 1000000', v_purchase.messages
                using errcode = 'invalid_parameter_value';
        end if;
        perform headroom.grant_once(
            v_purchase.user_id, v_purchase.messages::integer, p_told, v_key, headroom.unknown_users()
        );
        update headroom.store_purchases as purchases
        set granted = v_purchase.messages, billing_period = grants.billing_period
        from headroom.grants as grants
        where purchases.source = p_source and purchases.transaction = p_transaction
            and grants.user_id = v_purchase.user_id and grants.key = v_key;
    elsif v_is_refunded and v_purchase.granted is not null then
        perform headroom.take_back_store_grant(v_purchase, p_told, p_id);
    end if;
    return true;
end
$$;
revoke all on function headroom.settle_store_purchase(text, text, text, text) from public;
grant execute on function headroom.settle_store_purchase(text, text, text, text) to headroom_service;
