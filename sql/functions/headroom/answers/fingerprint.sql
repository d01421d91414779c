-- Returns the transactions that last wrote the rows of a user, as a text by which a later poll finds changes. It
-- returns a table of one row, because PostgreSQL does not inline a function that returns a value and reads tables. It
-- is in SQL, because each poll calls it for every subscribed user, and PL/pgSQL takes three times as long.
create or replace function headroom.fingerprint(p_user_id uuid) returns table (fingerprint text)
    language sql stable
begin atomic
    select concat_ws(
        '/',
        (select string_agg(usage.xmin::text, ',') from public.message_usage as usage
         where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id),
        (select subscriber.xmin::text from headroom.subscribers as subscriber
         where subscriber.bucket = headroom.bucket_of(p_user_id) and subscriber.user_id = p_user_id),
        (select string_agg(subscription.xmin::text, ',') from headroom.subscriptions as subscription
         where subscription.bucket = headroom.bucket_of(p_user_id) and subscription.user_id = p_user_id)
    );
end;
