-- Returns a user's subscriptions as JSON, by original transaction, without the time of the newest event.
--
-- In PL/pgSQL, because PostgreSQL plans the query of an SQL function in each call if it cannot inline it.
create or replace function headroom.subscription_rows(p_user_id uuid) returns jsonb
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select coalesce(
            jsonb_object_agg(subscription.original_transaction_id, to_jsonb(subscription) - 'event_at'), '{}'
        )
        from headroom.subscriptions as subscription
        where subscription.bucket = headroom.bucket_of(p_user_id) and subscription.user_id = p_user_id
    );
end
$$;
