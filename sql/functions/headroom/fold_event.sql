-- One step of the fold: the subscription after an event that happened after all that are in it already. started_at is
-- null until a payment was seen; until then every event that tells the end is believed.
create or replace function headroom.fold_event(
    p_subscription headroom.subscriptions, p_event headroom.store_events
) returns headroom.subscriptions
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_row headroom.subscriptions := p_subscription;
    v_ends_at timestamptz;
begin
    if v_row.started_at is null then
        v_row.expires_at := coalesce(v_row.expires_at, p_event.expires_at);
    end if;
    case p_event.kind
        when 'purchased', 'renewed' then
            v_row := headroom.fold_payment(v_row, p_event);
        when 'cancelled' then
            -- The end in it can be later than what is known, where a renewal got lost, and never takes anything back.
            v_row.expires_at := greatest(v_row.expires_at, p_event.expires_at);
            v_row.unsubscribed_at := p_event.event_at;
        when 'uncancelled' then
            v_row.expires_at := greatest(v_row.expires_at, p_event.expires_at);
            v_row.unsubscribed_at := null;
        when 'grace_period' then
            -- Without a date, what an earlier notice of the same issue told holds, also that there is no grace; else it is
            -- 16 days after the end.
            v_row.grace_until := coalesce(
                p_event.grace_until,
                case when v_row.billing_issue_at is not null then v_row.grace_until end,
                case when v_row.expires_at is null then p_event.event_at + interval '16 days' end
            );
            v_row.billing_issue_at := coalesce(v_row.billing_issue_at, p_event.event_at);
        when 'billing_retry' then
            -- No grace any more; what is left of the paid time stays.
            v_row.grace_until := least(v_row.grace_until, p_event.grace_until, p_event.event_at);
            v_row.billing_issue_at := coalesce(v_row.billing_issue_at, p_event.event_at);
        when 'expired' then
            v_ends_at := coalesce(p_event.expires_at, p_event.event_at);
            -- An end before that which is known is of a time that was paid for again since.
            if (v_ends_at < v_row.expires_at) is not true then
                v_row.expires_at := v_ends_at;
                v_row.grace_until := null;
                v_row.billing_issue_at := null;
            end if;
        when 'revoked' then
            v_row.revoked_at := coalesce(v_row.revoked_at, p_event.event_at);
        when 'reinstated' then
            v_row.revoked_at := null;
        when 'extended' then
            -- A subscription without an end is not given one.
            if v_row.started_at is null or v_row.expires_at is not null then
                v_row.expires_at := greatest(v_row.expires_at, p_event.expires_at);
            end if;
        when 'product_changed' then
            if p_event.plan is not null then
                v_row.plan := p_event.plan;
                v_row.product := coalesce(p_event.product, v_row.product);
                v_row.expires_at := coalesce(p_event.expires_at, v_row.expires_at);
            end if;
            v_row.next_plan := p_event.next_plan;
            v_row.next_product := p_event.next_product;
    end case;
    v_row.plan := coalesce(v_row.plan, p_event.plan);
    v_row.product := coalesce(v_row.product, p_event.product);
    v_row.anchor_day := coalesce(p_event.anchor_day, v_row.anchor_day);
    v_row.environment := coalesce(p_event.environment, v_row.environment);
    v_row.event_at := p_event.event_at;
    return v_row;
end
$$;
revoke all on function headroom.fold_event(headroom.subscriptions, headroom.store_events) from public;
grant execute on function headroom.fold_event(headroom.subscriptions, headroom.store_events) to headroom_service;
