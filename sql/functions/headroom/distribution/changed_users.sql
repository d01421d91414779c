-- Finds subscribed users of a distributed database that have changed, as sql/queries/poll_subscribed_users.sql does in
-- another one. Returns their ordinals. It executes one query for each bucket, because Citus sends it to the bucket's
-- server.
create or replace function headroom.changed_users(p_users uuid[], p_fingerprints text[]) returns setof integer
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_bucket smallint;
    v_users uuid[];
    v_changed uuid[] := '{}';
    v_fingerprints jsonb := jsonb_object(p_users::text[], p_fingerprints);
begin
    for v_bucket, v_users in
        select headroom.bucket_of(users.user_id), array_agg(users.user_id) from unnest(p_users) as users (user_id)
        group by 1
    loop
        v_changed := v_changed || array(
            select present.user_id from headroom.fingerprints(v_bucket, v_users) as present
            where present.fingerprint <> v_fingerprints ->> present.user_id::text
        );
    end loop;
    return query
    select request.ordinal::integer from unnest(p_users) with ordinality as request (user_id, ordinal)
    where request.user_id = any(v_changed);
end
$$;
