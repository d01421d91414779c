-- Inserts or updates a purchase of messages. Grants the messages, or removes them after a refund if their period has
-- not ended. p_purchase: {"source", "transaction", "user", "at", "messages", "is_refunded"}.
create or replace function headroom.write_purchase(p_purchase jsonb, p_reason text, p_event_id text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_purchase headroom.message_purchases;
begin
    insert into headroom.message_purchases as purchases (
        source, transaction, user_id, happened_at, messages, is_refunded
    )
    select written.source, written.transaction, written."user", written.at, written.messages, written.is_refunded
    from jsonb_to_record(p_purchase) as written (
        source text, transaction text, "user" uuid, at timestamptz, messages integer, is_refunded boolean
    )
    on conflict (source, transaction) do update
    set is_refunded = excluded.is_refunded
    returning * into v_purchase;
    if v_purchase.is_refunded and v_purchase.granted_messages is not null then
        perform headroom.revoke_purchase(
            v_purchase.source, v_purchase.transaction, v_purchase.granted_messages, p_reason, p_event_id
        );
    elsif not v_purchase.is_refunded and v_purchase.granted_messages is null then
        perform headroom.grant_purchase(v_purchase.source, v_purchase.transaction, p_reason);
    end if;
end
$$;
