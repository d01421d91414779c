-- A purchase or a renewal: what was paid for, with everything forgotten that a payment mends, an earlier refund too.
create or replace function headroom.fold_payment(
    p_subscription headroom.subscriptions, p_event headroom.store_events
) returns headroom.subscriptions
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_row headroom.subscriptions := p_subscription;
    v_cycle_before text;
    v_cycle text;
begin
    v_row.plan := coalesce(p_event.plan, v_row.next_plan, v_row.plan);
    v_row.product := coalesce(p_event.product, v_row.next_product, v_row.product);
    select plans.cycle into v_cycle from headroom.plans as plans where plans.plan = v_row.plan;
    if v_row.plan <> p_subscription.plan then
        select plans.cycle into v_cycle_before from headroom.plans as plans where plans.plan = p_subscription.plan;
    end if;
    -- A trial that becomes a subscription begins like one that is bought.
    if p_event.kind = 'purchased' or (v_cycle_before = 'trial' and v_cycle <> 'trial') then
        v_row.started_at := coalesce(p_event.started_at, p_event.event_at);
        if v_cycle = 'monthly' then
            v_row.anchor_day := extract(day from v_row.started_at at time zone 'UTC');
        end if;
    elsif v_row.started_at is null then
        v_row.started_at := coalesce(p_event.started_at, p_event.event_at);
        if v_cycle = 'monthly' and p_event.started_at is not null then
            v_row.anchor_day := extract(day from v_row.started_at at time zone 'UTC');
        end if;
    end if;
    v_row.expires_at := p_event.expires_at;
    v_row.grace_until := null;
    v_row.billing_issue_at := null;
    v_row.unsubscribed_at := null;
    v_row.revoked_at := null;
    v_row.next_plan := null;
    v_row.next_product := null;
    return v_row;
end
$$;
revoke all on function headroom.fold_payment(headroom.subscriptions, headroom.store_events) from public;
grant execute on function headroom.fold_payment(headroom.subscriptions, headroom.store_events) to headroom_service;
