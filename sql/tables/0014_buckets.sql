-- Buckets: the parts into which the rows of users are divided, so that several machines can share them
-- (docs/decisions/0026-sql-for-a-distributed-database.md). A database begins with one bucket, 0.

-- To which bucket each user belongs: headroom.bucket_of, which headroom.divide_users rewrites with this row. A user's
-- hash has 64 bits: uuid_hash_extended(user_id, 0). Its last bits are the slot, and its first twelve the part.
create table headroom.bucket_map (
    only_row boolean primary key default true,
    buckets smallint[] not null,
    moved integer not null,
    constraint there_is_one_row check (only_row),
    constraint buckets_are_a_power_of_2_up_to_1024 check (
        array_ndims(buckets) = 1 and array_position(buckets, null) is null
        and cardinality(buckets) in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    ),
    constraint moved_is_0_to_4096 check (moved between 0 and 4096)
);
comment on column headroom.bucket_map.buckets is 'The bucket of each slot of the users'' hashes.';
comment on column headroom.bucket_map.moved is
    'Users of parts below this number have moved to their buckets, the others are still in bucket 0; 4096 is all.';
insert into headroom.bucket_map (buckets, moved) values ('{0}', 4096);
grant select on headroom.bucket_map to headroom_service, headroom_operator;
