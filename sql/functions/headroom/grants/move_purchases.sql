-- Moves a user's unused purchased messages to the current period of a plan that has periods. A purchase may arrive
-- before the subscription that starts the period; its messages are then granted in the trial or the free plan. Messages
-- that were used there are not moved. Only those that were bought in a month move to it; days and weeks are too short
-- for that, so 31 days count. The caller has locked the subscriber.
create or replace function headroom.move_purchases(p_user_id uuid, p_reason text, p_event_id text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_entitlement headroom.entitlement;
    v_purchase headroom.message_purchases;
    v_unused integer;
begin
    if not exists (select from headroom.message_purchases as purchases where purchases.user_id = p_user_id) then
        return;
    end if;
    v_entitlement := headroom.entitlement(p_user_id, headroom.now(), headroom.unknown_users_policy());
    if not headroom.is_periodic(v_entitlement.cycle) then
        return;
    end if;
    for v_purchase in
        select purchases.* from headroom.message_purchases as purchases
        where purchases.user_id = p_user_id and purchases.granted_messages is not null
            and purchases.happened_at >= case v_entitlement.cycle
                when 'monthly' then v_entitlement.started_at else headroom.now() - interval '31 days'
            end
            and headroom.label_cycle(purchases.billing_period) is null
        order by purchases.source, purchases.transaction
    loop
        -- A period without a limit uses no granted messages, so all of them are moved.
        select case
            when usage."limit" is null then v_purchase.granted_messages
            else greatest(
                least(v_purchase.granted_messages, usage."limit"::bigint - usage.message_count - usage.held), 0
            )
        end into v_unused
        from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
            and usage.billing_period = v_purchase.billing_period
            and coalesce(usage.resets_at > headroom.now(), true);
        -- It is null if that period has ended or its usage row was deleted.
        continue when v_unused is null or v_unused = 0;
        perform headroom.revoke_purchase(v_purchase.source, v_purchase.transaction, v_unused, p_reason, p_event_id);
        -- grant_purchase grants this number below, and again if the store reverses a refund.
        update headroom.message_purchases as purchases set messages = v_unused
        where purchases.source = v_purchase.source and purchases.transaction = v_purchase.transaction;
        perform headroom.grant_purchase(v_purchase.source, v_purchase.transaction, p_reason);
    end loop;
end
$$;
