-- Raises the receiver's counts to the giver's, once for each event, giver and receiver: {"source", "event", "giver",
-- "receiver"}.
create or replace function headroom.transfer_usage(p_transfer jsonb, p_reason text, p_id text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_giver constant uuid := (p_transfer ->> 'giver')::uuid;
    v_receiver constant uuid := (p_transfer ->> 'receiver')::uuid;
    v_usage jsonb;
begin
    insert into headroom.usage_transfers (source, event_id, giver, receiver, made_at)
    values (p_transfer ->> 'source', p_transfer ->> 'event', v_giver, v_receiver, headroom.now())
    on conflict do nothing;
    if not found then
        return;
    end if;
    select jsonb_object_agg(counted.kind, counted.messages) into v_usage
    from (
        select
            case when headroom.is_month(usage.billing_period) then 'monthly' else usage.billing_period end as kind,
            max(usage.message_count) as messages
        from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(v_giver) and usage.user_id = v_giver and usage.message_count > 0 and (
            not headroom.is_month(usage.billing_period)
            or headroom.now() < coalesce(
                usage.resets_at, ((usage.billing_period || '-01')::timestamp + interval '1 month') at time zone 'UTC'
            )
        )
        group by kind
    ) as counted;
    perform headroom.raise_usage(v_receiver, v_usage, p_reason, p_id);
end
$$;
revoke all on function headroom.transfer_usage(jsonb, text, text) from public;
grant execute on function headroom.transfer_usage(jsonb, text, text) to headroom_service;
