-- Grants the messages of a purchase in the user's current period.
create or replace function headroom.grant_purchase(p_source text, p_transaction text, p_reason text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_key constant text := headroom.purchase_key(p_source, p_transaction);
    v_purchase headroom.message_purchases;
begin
    select * into strict v_purchase from headroom.message_purchases
    where source = p_source and transaction = p_transaction;
    perform headroom.grant_once(
        v_purchase.user_id, v_purchase.messages, p_reason, v_key, null, headroom.unknown_users_policy(), true
    );
    select billing_period into strict v_purchase.billing_period from headroom.grants
    where bucket = headroom.bucket_of(v_purchase.user_id) and user_id = v_purchase.user_id and key = v_key;
    update headroom.message_purchases
    set granted_messages = messages, billing_period = v_purchase.billing_period
    where source = p_source and transaction = p_transaction;
end
$$;
