-- Takes a purchase's messages off the period in which they were granted, while that runs.
create or replace function headroom.take_back_purchase(
    p_purchase headroom.message_purchases, p_reason text, p_id text
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_before public.message_usage;
    v_after public.message_usage;
begin
    select * into v_before from public.message_usage as usage
    where usage.user_id = p_purchase.user_id and usage.billing_period = p_purchase.billing_period
        and coalesce(usage.resets_at > headroom.now(), true)
    for update;
    if not found then
        return;
    end if;
    update public.message_usage as usage
    set granted = nullif(greatest(usage.granted - p_purchase.granted, 0), 0),
        -- Without a limit it stays without one: greatest() passes over nulls.
        "limit" = case when usage."limit" is not null then greatest(usage."limit" - p_purchase.granted, 0) end,
        usable_until = '-infinity'
    where usage.user_id = p_purchase.user_id and usage.billing_period = p_purchase.billing_period
    returning * into v_after;
    delete from headroom.grants as grants
    where grants.user_id = p_purchase.user_id
        and grants.key = headroom.purchase_key(p_purchase.source, p_purchase.transaction);
    update headroom.message_purchases as purchases
    set granted = null, billing_period = null
    where purchases.source = p_purchase.source and purchases.transaction = p_purchase.transaction;
    perform headroom.record_change(
        p_purchase.user_id, p_purchase.billing_period, 'grant', headroom.usage_record(v_before),
        headroom.usage_record(v_after), p_reason, p_id
    );
end
$$;
revoke all on function headroom.take_back_purchase(headroom.message_purchases, text, text) from public;
grant execute on function headroom.take_back_purchase(headroom.message_purchases, text, text) to headroom_service;
