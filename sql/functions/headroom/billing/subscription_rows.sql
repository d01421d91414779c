-- Returns a user's subscriptions as JSON, by original transaction, without the time of the newest event.
create or replace function headroom.subscription_rows(p_user_id uuid) returns jsonb
    language sql stable
    return (
        select coalesce(
            jsonb_object_agg(subscription.original_transaction_id, to_jsonb(subscription) - 'event_at'), '{}'
        )
        from headroom.subscriptions as subscription
        where subscription.bucket = headroom.bucket_of(p_user_id) and subscription.user_id = p_user_id
    );
