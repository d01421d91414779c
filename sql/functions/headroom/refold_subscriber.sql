-- Computes a user anew after events of a transaction came or went, with what was there before as p_before. The caller
-- holds the subscriber's row and has changed the events. p_was_folded: events were in force before that.
create or replace function headroom.refold_subscriber(
    p_user_id uuid, p_transaction text, p_was_folded boolean, p_before jsonb, p_told text, p_id text
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    delete from headroom.subscriptions as subscription
    where subscription.user_id = p_user_id and subscription.original_transaction_id = p_transaction;
    if p_was_folded then
        -- The fold starts from what was there before the first event; otherwise the anchor day of what went would stay.
        update headroom.subscribers as subscriber set anchor_day = subscriber.declared_anchor_day
        where subscriber.user_id = p_user_id and subscriber.declared_anchor_day <> subscriber.anchor_day;
    end if;
    perform headroom.fold_store_events(p_user_id);
    update public.message_usage as usage set usable_until = '-infinity'
    where usage.user_id = p_user_id and usage.usable_until > '-infinity';
    perform headroom.record_change(
        p_user_id, null, 'store_event', p_before,
        -- A subscription that is gone is recorded as an empty object.
        coalesce(headroom.standing_record(p_user_id, p_transaction), case when p_before is not null then '{}'::jsonb end),
        p_told, p_id
    );
end
$$;
revoke all on function headroom.refold_subscriber(uuid, text, boolean, jsonb, text, text) from public;
grant execute on function headroom.refold_subscriber(uuid, text, boolean, jsonb, text, text) to headroom_service;
