-- Grants what was bought in the period that runs now.
create or replace function headroom.grant_purchase(p_purchase headroom.message_purchases, p_reason text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_key constant text := headroom.purchase_key(p_purchase.source, p_purchase.transaction);
begin
    perform headroom.grant_once(
        p_purchase.user_id, p_purchase.messages, p_reason, v_key, headroom.unknown_users()
    );
    update headroom.message_purchases as purchases
    set granted = p_purchase.messages, billing_period = grants.billing_period
    from headroom.grants as grants
    where purchases.source = p_purchase.source and purchases.transaction = p_purchase.transaction
        and grants.user_id = p_purchase.user_id and grants.key = v_key;
end
$$;
revoke all on function headroom.grant_purchase(headroom.message_purchases, text) from public;
grant execute on function headroom.grant_purchase(headroom.message_purchases, text) to headroom_service;
