-- What was bought in the month that runs belongs to it, also where it was told before the subscription with which the
-- month began, and so was granted to the trial, or the free plan, of before. What was used there stays there.
create or replace function headroom.move_store_purchases(p_user_id uuid, p_told text, p_id text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_terms headroom.terms;
    v_purchase headroom.store_purchases;
    v_unused integer;
begin
    if not exists (select from headroom.store_purchases as purchases where purchases.user_id = p_user_id) then
        return;
    end if;
    v_terms := headroom.terms_of(p_user_id, headroom.now(), headroom.unknown_users());
    if v_terms.cycle <> 'monthly' then
        return;
    end if;
    for v_purchase in
        select purchases.* from headroom.store_purchases as purchases
        where purchases.user_id = p_user_id and purchases.granted is not null
            and purchases.happened_at >= v_terms.started_at
            and not headroom.is_month(purchases.billing_period)
        order by purchases.source, purchases.transaction
    loop
        -- In a period without a limit no grant was used.
        select case
            when usage."limit" is null then v_purchase.granted
            else greatest(least(v_purchase.granted, usage."limit"::bigint - usage.message_count - usage.held), 0)
        end into v_unused
        from public.message_usage as usage
        where usage.user_id = p_user_id and usage.billing_period = v_purchase.billing_period
            and coalesce(usage.resets_at > headroom.now(), true);
        continue when v_unused is null or v_unused = 0;
        v_purchase.granted := v_unused;
        perform headroom.take_back_store_grant(v_purchase, p_told, p_id);
        update headroom.store_purchases as purchases set messages = v_unused
        where purchases.source = v_purchase.source and purchases.transaction = v_purchase.transaction;
        perform headroom.settle_store_purchase(v_purchase.source, v_purchase.transaction, p_told, p_id);
    end loop;
end
$$;
revoke all on function headroom.move_store_purchases(uuid, text, text) from public;
grant execute on function headroom.move_store_purchases(uuid, text, text) to headroom_service;
