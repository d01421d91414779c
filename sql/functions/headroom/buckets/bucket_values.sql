-- Returns p_count bucket numbers, for the slots of the users' hashes. They are chosen so that a distributed database
-- which is divided into as many shards has one bucket in each: Citus finds the shard of a row by the bucket's hash.
-- p_count is a power of 2, 2 to 1024.
create or replace function headroom.bucket_values(p_count integer) returns smallint[]
    language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
    if p_count is null or p_count <> all(array[2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]) then
        raise exception 'the number of buckets is a power of 2 from 2 to 1024, such as 64'
            using errcode = 'invalid_parameter_value';
    end if;
    -- Shard number n has the hashes from n * 2^32 / p_count - 2^31 on.
    return array(
        select min(numbers.bucket)::smallint
        from generate_series(0, 32767) as numbers (bucket)
        group by (hashint2(numbers.bucket::smallint)::bigint + 2147483648) / (4294967296 / p_count)
        order by (hashint2(numbers.bucket::smallint)::bigint + 2147483648) / (4294967296 / p_count)
    );
end
$$;
