-- What the audit log keeps of a user and one of the transactions.
create or replace function headroom.standing_record(p_user_id uuid, p_transaction text) returns jsonb
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_subscriber headroom.subscribers;
    v_subscription headroom.subscriptions;
begin
    select * into v_subscriber from headroom.subscribers as subscriber where subscriber.user_id = p_user_id;
    select * into v_subscription from headroom.subscriptions as subscription
    where subscription.user_id = p_user_id and subscription.original_transaction_id = p_transaction;
    return headroom.store_event_record(
        headroom.terms_of(p_user_id, headroom.now(), 'deny'), v_subscriber, v_subscription
    );
end
$$;
revoke all on function headroom.standing_record(uuid, text) from public;
grant execute on function headroom.standing_record(uuid, text) to headroom_service;
