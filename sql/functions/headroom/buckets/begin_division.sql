-- Prepares the division of a database with one bucket into those of p_buckets, one for each slot of the users' hashes.
-- It moves no user; headroom.divide_users does. The login that migrates calls it, because another role may own
-- message_usage.
create or replace function headroom.begin_division(p_buckets smallint[]) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_map headroom.bucket_map;
begin
    perform pg_advisory_xact_lock(hashtextextended('headroom.divide_users', 0));
    -- This table comes before the others, because lanes that read lock it first.
    lock table public.message_usage in access exclusive mode;
    select * into v_map from headroom.bucket_map for update;
    if v_map.buckets <> '{0}' then
        raise exception 'the database has % buckets already', cardinality(v_map.buckets)
            using errcode = 'object_not_in_prerequisite_state',
                hint = 'The number of buckets is fixed once a division has begun.';
    end if;
    alter table headroom.spent_trials drop constraint if exists bucket_is_0;
    perform headroom.write_bucket_map(p_buckets, 0);
end
$$;
