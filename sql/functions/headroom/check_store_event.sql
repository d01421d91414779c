-- Refuses an event whose fields do not make sense together, or that names a plan which is not there.
create or replace function headroom.check_store_event(p_event headroom.store_events) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_missing constant text := case
        when p_event.event_id is null then 'id'
        when p_event.source is null then 'source'
        when p_event.kind is null then 'kind'
        when p_event.event_at is null then 'at'
        when not headroom.is_store_event_kind(p_event.kind) then null
        when p_event.original_transaction_id is null then 'transaction'
        when p_event.kind = 'purchased' and p_event.plan is null then 'plan'
        when p_event.kind in ('renewed', 'extended') and p_event.expires_at is null then 'expires'
    end;
    v_stray constant text := case
        when not headroom.is_store_event_kind(p_event.kind) then null
        when p_event.grace_until is not null and p_event.kind not in ('grace_period', 'billing_retry')
            then 'grace_until'
        when p_event.kind = 'product_changed' then null
        when p_event.next_plan is not null then 'next_plan'
        when p_event.next_product is not null then 'next_product'
    end;
    v_plan text;
begin
    if v_missing is not null then
        raise exception '% is missing', quote_literal(v_missing)
            using errcode = 'null_value_not_allowed', hint = case v_missing
                when 'plan' then 'A purchase says which plan was bought.'
                when 'expires' then 'A renewal and an extension say until when.'
                else 'Each event has an id, a source, a kind, and at, the instant at which it happened.'
            end;
    elsif v_stray is not null then
        raise exception '% has no meaning in an event of kind %', quote_literal(v_stray), quote_literal(p_event.kind)
            using errcode = 'invalid_parameter_value', hint = case v_stray
                when 'grace_until' then 'It belongs to grace_period.' else 'It belongs to product_changed.'
            end;
    elsif p_event.event_at > headroom.now() + interval '1 day' then
        -- It would outrank all that really happens until then.
        raise exception '''at'' is in the future' using errcode = 'invalid_parameter_value',
            hint = 'It is when the event happened; the database''s clock says ' || headroom.now() || '.';
    elsif p_event.expires_at < p_event.started_at then
        raise exception '''expires'' is before ''started''' using errcode = 'invalid_parameter_value';
    elsif p_event.original_transaction_id in ('operator', 'first message') then
        -- The rows of set_plan and of a first message go by these names.
        raise exception '''transaction'' is a name that Headroom itself uses' using errcode = 'invalid_parameter_value';
    end if;
    foreach v_plan in array array[p_event.plan, p_event.next_plan] loop
        if v_plan is not null and not exists (select from headroom.plans as plans where plans.plan = v_plan) then
            raise exception 'there is no plan %', quote_literal(v_plan)
                using errcode = 'no_data_found', hint = 'select plan from headroom.plans lists them.';
        end if;
    end loop;
end
$$;
revoke all on function headroom.check_store_event(headroom.store_events) from public;
grant execute on function headroom.check_store_event(headroom.store_events) to headroom_service;
