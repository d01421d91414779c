-- Removes granted messages of a purchase from the period in which they were granted, if it has not ended. Locks the
-- usage row.
create or replace function headroom.revoke_purchase(
    p_source text, p_transaction text, p_messages integer, p_reason text, p_event_id text
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_key constant text := headroom.purchase_key(p_source, p_transaction);
    v_user_id uuid;
    v_period text;
    v_row public.message_usage;
    v_limit integer;
begin
    select user_id, billing_period into strict v_user_id, v_period from headroom.message_purchases
    where source = p_source and transaction = p_transaction;
    -- It is another one if the clock was ahead when the messages were granted (headroom.correct_clock_jump).
    v_period := coalesce((
        select grants.billing_period from headroom.grants as grants
        where grants.bucket = headroom.bucket_of(v_user_id) and grants.user_id = v_user_id and grants.key = v_key
    ), v_period);
    perform headroom.lock_usage(v_user_id, v_period);
    perform headroom.detach_balances(v_user_id, headroom.now());
    v_row := headroom.lock_usage(v_user_id, v_period);
    if v_row.user_id is null or v_row.resets_at <= headroom.now() then
        return;
    end if;
    -- A null, which is unlimited, stays null; greatest() would ignore it.
    v_limit := case when v_row."limit" is not null then greatest(v_row."limit" - p_messages, 0) end;
    update public.message_usage
    set granted = nullif(greatest(granted - p_messages, 0), 0), "limit" = v_limit, usable_until = '-infinity'
    where bucket = headroom.bucket_of(v_user_id) and user_id = v_user_id and billing_period = v_period;
    delete from headroom.grants
    where bucket = headroom.bucket_of(v_user_id) and user_id = v_user_id and key = v_key;
    update headroom.message_purchases set granted_messages = null, billing_period = null
    where source = p_source and transaction = p_transaction;
    perform headroom.record_change(
        v_user_id, v_period, 'grant', headroom.usage_record(v_period, v_row.message_count, v_row."limit"),
        headroom.usage_record(v_period, v_row.message_count, v_limit), p_reason, p_event_id
    );
    -- The row may be unused now.
    perform headroom.apply_entitlement(v_user_id, headroom.entitlement(v_user_id, headroom.now(), 'deny'));
end
$$;
