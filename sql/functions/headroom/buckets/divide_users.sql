-- Moves the users of the parts below p_to that are still in bucket 0 to their buckets, in one transaction, and returns
-- the number of rows that it has changed. headroom.begin_division comes first, and a last call with 4096. Call it in
-- the role headroom_owner, in a transaction of its own: it stops all counting until that ends, so a step should move a
-- few thousand rows at most.
--
-- The advisory lock waits for the batches and changes under way, and holds up the next ones (headroom.await_division).
-- Batches then find that the revision of the map has changed (HR012). A change by psql that writes the tables directly,
-- and has waited for a row which is moved, fails by the trigger bucket_is_of_the_user, or finds no row, and can be made
-- again.
create or replace function headroom.divide_users(p_to integer) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_map headroom.bucket_map;
    v_table text;
    v_moved bigint;
    v_rows bigint := 0;
begin
    perform pg_advisory_xact_lock(hashtextextended('headroom.divide_users', 0));
    select * into v_map from headroom.bucket_map for update;
    if p_to is null or p_to not between v_map.moved + 1 and 4096 then
        raise exception 'users of the parts below % have moved; p_to must be greater, and at most 4096', v_map.moved
            using errcode = 'invalid_parameter_value';
    end if;
    perform headroom.write_bucket_map(v_map.buckets, p_to);
    perform from headroom.subscribers as subscriber
    where headroom.part_of(subscriber.user_id) >= v_map.moved and headroom.part_of(subscriber.user_id) < p_to
    order by subscriber.user_id
    for update;
    set constraints headroom.subscriptions_bucket_user_id_fkey deferred;
    foreach v_table in array headroom.divided_tables() loop
        execute format(
            'update %s set bucket = headroom.bucket_of(user_id) '
            'where headroom.part_of(user_id) >= $1 and headroom.part_of(user_id) < $2 '
            'and bucket <> headroom.bucket_of(user_id)', v_table
        ) using v_map.moved, p_to;
        get diagnostics v_moved = row_count;
        v_rows := v_rows + v_moved;
    end loop;
    -- The digest of a forgotten user does not show the bucket, so every bucket gets a copy.
    insert into headroom.spent_trials as spent (bucket, digest, plan, trial_started_at, trial_ends_at, messages)
    select buckets.bucket, one.digest, one.plan, one.trial_started_at, one.trial_ends_at, one.messages
    from headroom.spent_trials as one
    cross join unnest(v_map.buckets) as buckets (bucket)
    where one.bucket = 0 and buckets.bucket <> 0
    on conflict (bucket, digest, plan) do nothing;
    return v_rows;
end
$$;
