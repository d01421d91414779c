-- Returns for users of one bucket what headroom.fingerprint returns for one user of a database that is not distributed.
-- It is in PL/pgSQL, with the bucket as a parameter, so that Citus sends the query to the bucket's server.
create or replace function headroom.fingerprints(p_bucket smallint, p_users uuid[])
    returns table (user_id uuid, fingerprint text)
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return query
    select
        request.user_id,
        concat_ws(
            '/',
            (select string_agg(usage.xmin::text, ',') from public.message_usage as usage
             where usage.bucket = p_bucket and usage.user_id = request.user_id),
            (select subscriber.xmin::text from headroom.subscribers as subscriber
             where subscriber.bucket = p_bucket and subscriber.user_id = request.user_id),
            (select string_agg(subscription.xmin::text, ',') from headroom.subscriptions as subscription
             where subscription.bucket = p_bucket and subscription.user_id = request.user_id)
        )
    from unnest(p_users) as request (user_id);
end
$$;
